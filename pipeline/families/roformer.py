"""RoFormer (Su et al. 2021, arXiv:2104.09864): rotary position embeddings."""

from edgebert.pipeline.families.family import BERT_HEADS, BERT_NEURONS, Family

FAMILY = Family(
    model_type="roformer",
    tiny_config={
        "embedding_size": 16,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    },
    layer_path="roformer.encoder.layer",
    embedding_path="roformer.embeddings.word_embeddings",
    heads=(BERT_HEADS,),
    neurons=(BERT_NEURONS,),
    embedding_projection="roformer.embeddings_project",
)
