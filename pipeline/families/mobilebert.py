"""MobileBERT (Sun et al. 2020, arXiv:2004.02984): bottlenecks, NoNorm, trigram embeddings."""

from edgebert.pipeline.families.family import BERT_HEADS, BERT_NEURONS, Family, Parts

FAMILY = Family(
    model_type="mobilebert",
    tiny_config={
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "embedding_size": 16,
        "intra_bottleneck_size": 16,
    },
    layer_path="mobilebert.encoder.layer",
    embedding_path="mobilebert.embeddings.word_embeddings",
    masked=-1e4,  # nothing normalizes what goes into attention: scores of hundreds occur
    heads=(BERT_HEADS,),
    neurons=(BERT_NEURONS, Parts("ffn.*", BERT_NEURONS.cuts)),
)
