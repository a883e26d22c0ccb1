"""Write a trained model as a checkpoint folder that any transformers process reads."""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from edgebert.pipeline.artifact import Checkpoint


def save_checkpoint(model: Any, tokenizer: Tokenizer, out: Path, name: str) -> Checkpoint:
    """Save config.json, model.safetensors and tokenizer.json; tensors that share storage are stored once.

    Args:
        model: a transformers model.
        tokenizer: its tokenizer.
        out: the folder to write.
        name: what reports call the checkpoint.
    """
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    tokenizer.save(str(out / "tokenizer.json"))
    return Checkpoint(out, name)
