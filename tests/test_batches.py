"""Rows as a model reads them: padding, token types, targets, and texts without labels."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.families import all_families
from edgebert.pipeline.stages.batches import Collator, Texts
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.unlabeled import read_unlabeled, without_held_out
from edgebert.targets.errors import InputError

TinyCheckpoint = Callable[..., Checkpoint]
LABELS = ("bad", "so so", "good")


@pytest.mark.parametrize(
    "model_type",
    # Convolutions, and MobileBERT's embedding of the next token, see the padding.
    [name for name in all_families() if name not in ("convbert", "mobilebert")],
)
def test_a_padded_batch_gives_what_each_row_alone_gives(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path, model_type: str
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "m", LABELS)
    rows = (Row("good film", "good"), Row("the weather is bad", "Bad", text_pair="not new"))
    texts = Texts(rows, checkpoint.labels, checkpoint, 64)
    collate, model = Collator.of(checkpoint), load_model(checkpoint)
    batch = collate([texts[0], texts[1]])
    assert batch.pop("labels").tolist() == [2, 0]  # by name, whatever its case
    assert ("token_type_ids" in batch) == checkpoint.has_token_type_ids
    with torch.no_grad():
        together = model(**batch).logits
        for index in range(2):
            alone = collate([texts[index]])
            del alone["labels"]
            torch.testing.assert_close(together[index], model(**alone).logits[0], atol=1e-4, rtol=0)


def test_unlabeled_texts(tmp_path: Path) -> None:
    text, lines = tmp_path / "a.txt", tmp_path / "b.jsonl"
    text.write_text("one\n\n two \n", encoding="utf-8")
    lines.write_text('{"text": "one", "label": "x"}\n{"text": "three", "text_pair": "four"}\n')
    assert read_unlabeled(str(text)) == (Row("one"), Row("two"))
    assert read_unlabeled(str(lines)) == (Row("one"), Row("three", None, "four"))
    data = Dataset("d", (), (Row("ONE ", "x"),), (), sha256="")
    assert without_held_out((Row("one"), Row("two"), Row("Two")), data) == (Row("Two"),)
    lines.write_text('{"sentence": "one"}\n')
    for name, message in ((lines, "found the columns sentence"), (tmp_path / "c.txt", "cannot be")):
        with pytest.raises(InputError, match=message):
            read_unlabeled(str(name))
    with pytest.raises(InputError, match="no such file"):
        read_unlabeled(str(tmp_path / "c.jsonl"))
