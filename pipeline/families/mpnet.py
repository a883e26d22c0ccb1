"""MPNet (Song et al. 2020, arXiv:2004.09297): absolute and relative positions, no token types."""

from edgebert.pipeline.families.family import BERT_NEURONS, Cut, Family, Parts

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
    heads=(Parts("attention.attn", (Cut("q"), Cut("k"), Cut("v"), Cut("o", 1))),),
    shared_heads=(Cut("mpnet.encoder.relative_attention_bias", 1),),
    neurons=(BERT_NEURONS,),
)
