"""Prune: fewer heads, neurons, layers and words, in a checkpoint whose shapes really shrink."""

from dataclasses import dataclass
from pathlib import Path

from edgebert.calibration.dataset import Dataset
from edgebert.calibration.sample import draw_calibration
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.recipe import PruneSettings
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.importance import magnitude_importance, taylor_importance
from edgebert.pipeline.stages.surgery import Surgery
from edgebert.pipeline.stages.trim import tokens_to_keep, trim
from edgebert.targets.errors import InputError


@dataclass(frozen=True)
class Prune:
    """Make a checkpoint smaller.

    Every layer keeps the same number of heads and of neurons; which ones, their importance says. A
    layer that is shared (ALBERT) is pruned at every depth at once.

    Attributes:
        settings: what is kept, and how importance is measured.
    """

    settings: PruneSettings

    def __call__(self, checkpoint: Checkpoint, data: Dataset | None, out: Path) -> Checkpoint:
        """Leave the pruned checkpoint in `out`.

        Neurons, layers, words and embeddings are plain configuration. Fewer heads are not:
        transformers derives the size of a head from their number. That folder carries
        `pruned_model.py`, with which a plain process loads it (`trust_remote_code=True`);
        `load_model` reads it as any other.

        Args:
            checkpoint: the model.
            data: its train split is what importance is measured on and the vocabulary is trimmed
                to; without data importance is magnitude.
            out: folder of the result.

        Raises:
            InputError: nothing would be left, a number of heads or layers that is not whole, data
                that is missing, or an architecture without what is asked for.
        """
        wanted = self.settings
        surgery = Surgery(checkpoint)
        heads, neurons, layers = surgery.resolve(wanted.heads, wanted.ffn, wanted.layers)
        if any(value is not None for value in (wanted.heads, wanted.ffn, wanted.layers)):
            if data is None or wanted.importance == "magnitude":
                scores = magnitude_importance(surgery)
            else:
                rows = draw_calibration(data, wanted.rows, wanted.seed)
                scores = taylor_importance(surgery, checkpoint, rows)
            surgery.cut_heads(heads, scores.heads)
            surgery.cut_neurons(neurons, scores.neurons)
            surgery.drop_layers(layers, scores.layers)
        tokenizer = checkpoint.tokenizer
        if wanted.vocabulary:
            keep = tokens_to_keep(tokenizer, _texts(data), surgery.token_ids)
            surgery.keep_tokens(keep)
            tokenizer = trim(tokenizer, keep)
        if wanted.embedding_size is not None:
            surgery.factorize(wanted.embedding_size)
        return save_checkpoint(surgery.model(), tokenizer, out, checkpoint.name)


def _texts(data: Dataset | None) -> list[str]:
    """What the vocabulary is trimmed to: dev and test stay unseen."""
    rows = data.train if data else ()
    texts = [t for row in rows for t in (row.text, row.text_pair or "", *row.tokens) if t]
    if not texts:
        raise InputError(
            "no train texts to trim the vocabulary to",
            data.name if data else "",
            "give --data with a train split, or leave out prune.vocabulary",
        )
    return texts
