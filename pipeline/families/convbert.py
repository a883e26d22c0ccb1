"""ConvBERT (Jiang et al. 2020, arXiv:2008.02496): half of the heads are convolutions."""

from edgebert.pipeline.families.family import Family

FAMILY = Family(
    model_type="convbert",
    tiny_config={
        "embedding_size": 16,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "conv_kernel_size": 3,
        "pad_token_id": 0,
    },
    layer_path="convbert.encoder.layer",
    embedding_path="convbert.embeddings.word_embeddings",
)
