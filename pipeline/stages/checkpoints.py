"""Write a trained model as a checkpoint folder that any transformers process reads."""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from edgebert.pipeline.artifact import Checkpoint


def save_checkpoint(model: Any, tokenizer: Tokenizer, out: Path, name: str) -> Checkpoint:
    """Save config.json, model.safetensors and tokenizer.json.

    Tensors that the architecture ties are stored once. Others that happen to share their storage (a
    layer used at two depths) are stored under each of their names: a process that loads the folder
    knows nothing of the sharing and looks for every name.

    Args:
        model: a transformers model.
        tokenizer: its tokenizer.
        out: the folder to write.
        name: what reports call the checkpoint.
    """
    out.mkdir(parents=True, exist_ok=True)
    tied = {*model.all_tied_weights_keys.keys(), *model.all_tied_weights_keys.values()}
    tensors: dict[str, Any] = {}
    seen: set[int] = set()
    for key, tensor in model.state_dict().items():
        repeated = key not in tied and tensor.data_ptr() in seen
        seen.add(tensor.data_ptr())
        tensors[key] = tensor.clone() if repeated else tensor
    model.save_pretrained(out, state_dict=tensors)
    tokenizer.save(str(out / "tokenizer.json"))
    return Checkpoint(out, name)
