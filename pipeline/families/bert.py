"""BERT (Devlin et al. 2018, arXiv:1810.04805), and what is BERT by configuration.

TinyBERT, mBERT, ClinicalBERT, SciBERT, BERT-wwm, chinese-roberta-wwm-ext, MacBERT, MiniLM.
"""

from edgebert.pipeline.families.family import BERT_HEADS, BERT_NEURONS, Family

FAMILY = Family(
    model_type="bert",
    tiny_config={
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    },
    layer_path="bert.encoder.layer",
    embedding_path="bert.embeddings.word_embeddings",
    heads=(BERT_HEADS,),
    neurons=(BERT_NEURONS,),
)
