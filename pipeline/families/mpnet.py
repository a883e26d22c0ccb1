"""MPNet (Song et al. 2020, arXiv:2004.09297): absolute and relative positions, no token types."""

from edgebert.pipeline.families.family import Family

FAMILY = Family(
    model_type="mpnet",
    tiny_config={
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 66,
        "pad_token_id": 1,
    },
    layer_path="mpnet.encoder.layer",
    embedding_path="mpnet.embeddings.word_embeddings",
    positions_after_padding=True,
    token_types="never",
)
