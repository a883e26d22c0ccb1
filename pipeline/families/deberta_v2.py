"""DeBERTa v2 and v3 (He et al. 2021, arXiv:2111.09543): logarithmic position buckets."""

from edgebert.pipeline.families.family import BERT_NEURONS, Cut, Family, Parts

FAMILY = Family(
    model_type="deberta-v2",
    mixes_neighbors="config",
    tiny_config={
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
    },
    layer_path="deberta.encoder.layer",
    embedding_path="deberta.embeddings.word_embeddings",
    mask="binary",
    heads=(
        Parts(
            "attention",
            (
                Cut("self.query_proj"),
                Cut("self.key_proj"),
                Cut("self.value_proj"),
                Cut("self.pos_key_proj"),
                Cut("self.pos_query_proj"),
                Cut("output.dense", 1),
            ),
        ),
    ),
    neurons=(BERT_NEURONS,),
    embedding_projection="deberta.embeddings.embed_proj",
    projects_normalized=False,
)
