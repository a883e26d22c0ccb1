"""RoBERTa (Liu et al. 2019, arXiv:1907.11692), DistilRoBERTa: one token type, BPE."""

from edgebert.pipeline.families.family import BERT_HEADS, BERT_NEURONS, Family

FAMILY = Family(
    model_type="roberta",
    tiny_config={
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 66,
        "type_vocab_size": 1,
        "pad_token_id": 1,
    },
    layer_path="roberta.encoder.layer",
    embedding_path="roberta.embeddings.word_embeddings",
    positions_after_padding=True,
    heads=(BERT_HEADS,),
    neurons=(BERT_NEURONS,),
)
