"""Where drift arises: how far each layer of a model file is from the fp32 checkpoint."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from edgebert.targets import Format

EQUAL_DB = 200.0  # signal to noise of two tensors that are equal
NOTHING = 1e-5  # relative difference that fp32 itself makes


class LayerDrift(BaseModel):
    """One layer's output against the checkpoint's, over the tokens of all texts.

    A layer shows what the layers before it did as well; `added` is its own share.

    Attributes:
        name: `embeddings`, `layer 1`, ...; a layer that is used several times counts each time.
        snr_db: signal to noise, 10 log10(sum of squares / sum of squared differences); 20 dB are
            differences of a tenth, 200 none at all. None where the file has no such tensor.
        added: the relative difference that the layer adds, as if it had nothing to do with what was
            there before: the root of the difference of the squares.
        cosine_mean, cosine_min: of the vectors of tokens.
        by_value: the tensor was found by what it holds, since its name in the fp32 file is not in
            this one.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    snr_db: float | None = None
    added: float | None = None
    cosine_mean: float | None = None
    cosine_min: float | None = None
    by_value: bool = False

    @property
    def relative(self) -> float | None:
        """Root mean square of the differences, relative to that of the layer's output."""
        return None if self.snr_db is None else float(10 ** (-self.snr_db / 20))


class LayerReport(BaseModel):
    """The layers of one model file.

    Attributes:
        format, scheme: of the file.
        texts, tokens: of the dev rows that it was measured on.
        runtime: what ran the file, with every fusion that hides a layer's output switched off.
        layers: from the embeddings up.
    """

    model_config = ConfigDict(frozen=True)

    format: Format
    scheme: str
    texts: int
    tokens: int
    runtime: str
    layers: tuple[LayerDrift, ...]

    @property
    def worst(self) -> LayerDrift | None:
        """The layer that adds most; None where hardly any adds something."""
        adding = [layer for layer in self.layers if (layer.added or 0.0) > NOTHING]
        return max(adding, key=lambda layer: layer.added or 0.0, default=None)

    def text(self) -> str:
        """For people: a table, and the layer that adds most."""
        lines = [
            f"{self.format} {self.scheme}, {self.texts} dev texts ({self.tokens} tokens), "
            f"{self.runtime}",
            f"  {'':<12} {'SNR':>9} {'difference':>11} {'added':>9} {'cosine mean':>12} "
            f"{'lowest':>9}",
        ]
        for layer in self.layers:
            if layer.relative is None:
                lines.append(f"  {layer.name:<12} not in this file")
                continue
            lines.append(
                f"  {layer.name:<12} {layer.snr_db:>6.1f} dB {layer.relative:>11.3%} "
                f"{layer.added:>9.3%} {layer.cosine_mean:>12.5f} {layer.cosine_min:>9.5f}"
                f"{'  (found by value)' if layer.by_value else ''}"
            )
        if self.worst:
            lines.append(f"  most is added by {self.worst.name}: {self.worst.added:.3%}")
        return "\n".join(lines)


def with_added(layers: Sequence[LayerDrift]) -> tuple[LayerDrift, ...]:
    """The layers with `added`, from one layer that was found to the next."""
    found: list[LayerDrift] = []
    before = 0.0
    for layer in layers:
        relative = layer.relative
        if relative is not None:
            added = max(0.0, relative**2 - before**2) ** 0.5
            layer, before = layer.model_copy(update={"added": added}), relative
        found.append(layer)
    return tuple(found)
