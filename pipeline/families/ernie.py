"""ERNIE (Sun et al. 2019, arXiv:1904.09223; 3.0: arXiv:2107.02137): BERT with task types."""

from edgebert.pipeline.families.family import BERT_HEADS, BERT_NEURONS, Family

FAMILY = Family(
    model_type="ernie",
    tiny_config={
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "use_task_id": True,
    },
    layer_path="ernie.encoder.layer",
    embedding_path="ernie.embeddings.word_embeddings",
    heads=(BERT_HEADS,),
    neurons=(BERT_NEURONS,),
)
