"""ELECTRA (Clark et al. 2020, arXiv:2003.10555): a discriminator with embeddings E -> H."""

from edgebert.pipeline.families.family import BERT_HEADS, BERT_NEURONS, Family

FAMILY = Family(
    model_type="electra",
    tiny_config={
        "embedding_size": 16,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    },
    layer_path="electra.encoder.layer",
    embedding_path="electra.embeddings.word_embeddings",
    heads=(BERT_HEADS,),
    neurons=(BERT_NEURONS,),
    embedding_projection="electra.embeddings_project",
)
