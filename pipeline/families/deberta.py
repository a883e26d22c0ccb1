"""DeBERTa (He et al. 2020, arXiv:2006.03654): content and relative position disentangled."""

from edgebert.pipeline.families.family import BERT_NEURONS, Cut, Family, Parts

FAMILY = Family(
    model_type="deberta",
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
    },
    layer_path="deberta.encoder.layer",
    embedding_path="deberta.embeddings.word_embeddings",
    mask="binary",
    heads=(
        Parts(
            "attention",
            (
                Cut("self.in_proj"),  # query, key and value of a head side by side
                Cut("self.q_bias"),
                Cut("self.v_bias"),
                Cut("self.pos_proj"),
                Cut("self.pos_q_proj"),
                Cut("output.dense", 1),
            ),
        ),
    ),
    neurons=(BERT_NEURONS,),
    embedding_projection="deberta.embeddings.embed_proj",
    projects_normalized=False,
)
