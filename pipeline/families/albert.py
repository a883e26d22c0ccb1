"""ALBERT (Lan et al. 2019, arXiv:1909.11942): one layer for every depth, embeddings E -> H."""

from edgebert.pipeline.families.family import Cut, Family, Parts

FAMILY = Family(
    model_type="albert",
    tiny_config={
        "embedding_size": 16,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    },
    layer_path="albert.encoder.albert_layer_groups",
    embedding_path="albert.embeddings.word_embeddings",
    heads=(
        Parts(
            "albert_layers.*.attention", (Cut("query"), Cut("key"), Cut("value"), Cut("dense", 1))
        ),
    ),
    neurons=(Parts("albert_layers.*", (Cut("ffn"), Cut("ffn_output", 1))),),
    embedding_projection="albert.encoder.embedding_hidden_mapping_in",
)
