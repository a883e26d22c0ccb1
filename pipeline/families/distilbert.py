"""DistilBERT (Sanh et al. 2019, arXiv:1910.01108): half of BERT's layers, no token types."""

from edgebert.pipeline.families.family import Cut, Family, Parts

FAMILY = Family(
    model_type="distilbert",
    tiny_config={
        "dim": 32,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 64,
        "max_position_embeddings": 64,
    },
    layer_path="distilbert.transformer.layer",
    embedding_path="distilbert.embeddings.word_embeddings",
    token_types="never",
    heads=(Parts("attention", (Cut("q_lin"), Cut("k_lin"), Cut("v_lin"), Cut("out_lin", 1))),),
    neurons=(Parts("ffn", (Cut("lin1"), Cut("lin2", 1))),),
    neurons_field="hidden_dim",
)
