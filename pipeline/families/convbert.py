"""ConvBERT (Jiang et al. 2020, arXiv:2008.02496): half of the heads are convolutions."""

from edgebert.pipeline.families.family import BERT_NEURONS, Cut, Family, Parts

FAMILY = Family(
    model_type="convbert",
    mixes_neighbors="always",
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
    heads=(
        Parts(
            "attention",
            (
                Cut("self.query"),
                Cut("self.key"),
                Cut("self.value"),
                Cut("self.key_conv_attn_layer.pointwise"),
                Cut("self.key_conv_attn_layer.bias"),
                Cut("self.conv_kernel_layer", 0),
                Cut("self.conv_kernel_layer", 1),
                Cut("self.conv_out_layer"),
                Cut("output.dense", 1, blocks=2),  # attention, then convolution
            ),
        ),
    ),
    neurons=(BERT_NEURONS,),
    embedding_projection="convbert.embeddings_project",
)
