"""Settings of what trains: fine-tuning, distillation and its losses, students.

They are apart from the stages that use them, so that a recipe is checked without loading torch.
"""

from dataclasses import fields
from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as settings

Pair = tuple[int, int]  # student layer, teacher layer; both count from 1
LayerMap = Literal["uniform", "last"] | tuple[Pair, ...]

_STRICT = ConfigDict(extra="forbid")


@settings(frozen=True, kw_only=True, config=_STRICT)
class TrainingSettings:
    """Settings of one training run.

    Attributes:
        epochs: passes over the texts.
        batch_size: rows a step.
        learning_rate: peak of the schedule: linear warm-up, then cosine to zero.
        warmup: share of the steps that warm up.
        weight_decay: of AdamW.
        max_length: longest input in tokens; longer texts are truncated.
        seed: of every random choice.
        bf16: bfloat16 autocast; 4 times the speed on processors with AVX512-BF16 or AMX.
        save_steps: steps between the checkpoints an interrupted run resumes from.
    """

    epochs: float = Field(default=5.0, gt=0, allow_inf_nan=False)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=3e-4, gt=0, allow_inf_nan=False)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    max_length: int = Field(default=128, ge=4)
    seed: int = Field(default=0, ge=0, lt=2**32)
    bf16: bool = False
    save_steps: int = Field(default=1000, ge=1)


@settings(frozen=True, kw_only=True, config=_STRICT)
class LossSettings:
    """What the student learns from; the sum of the terms, each with its weight, 0 leaves it out.

    All but the soft targets compare tokens, and count only the texts that both tokenizers cut into
    the same ones.

    Attributes:
        alpha: weight of the labels; 1 - alpha is the teacher's.
        temperature: T of the soft targets.
        hidden_weight: hidden states of the layers.
        embedding_weight: hidden states before the first layer.
        attention_weight: attention maps of the layers.
        relation_weight: relations among queries, keys and values of the last pair of layers.
        relation_heads: number of relation heads; 0: the student's attention heads.
        layer_map: which teacher layer each student layer learns from: `uniform`, `last`, or pairs
            [student layer, teacher layer], counted from 1.
    """

    alpha: float = Field(default=0.5, ge=0, le=1)
    temperature: float = Field(default=2.0, gt=0, allow_inf_nan=False)
    hidden_weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    embedding_weight: float = Field(default=0.2, ge=0, allow_inf_nan=False)
    attention_weight: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    relation_weight: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    relation_heads: int = Field(default=0, ge=0)
    layer_map: LayerMap = "uniform"

    @property
    def compares_tokens(self) -> bool:
        """True where student and teacher have to read the same tokens."""
        weights = (self.hidden_weight, self.embedding_weight, self.attention_weight)
        return any((*weights, self.relation_weight))


@settings(frozen=True, kw_only=True, config=_STRICT)
class StudentSettings:
    """Sizes of an albert-like student.

    Attributes:
        embedding_size: E, the size of a stored word vector.
        vocabulary_size: V, most entries to keep of a WordPiece vocabulary.
    """

    embedding_size: int = Field(default=128, ge=1)
    vocabulary_size: int = Field(default=8000, ge=1)


@settings(frozen=True, kw_only=True, config=_STRICT)
class AugmentationSettings:
    """More texts from the labeled ones: a masked language model replaces words.

    Attributes:
        augmented_copies: new texts of each text; 0 for none.
        augmented_share: share of the words that are replaced.
        language_model: whose guesses they are: a catalogue name, a folder or a hub id of a masked
            language model; empty: the teacher's own head.
    """

    augmented_copies: int = Field(default=0, ge=0)
    augmented_share: float = Field(default=0.3, gt=0, le=1)
    language_model: str = ""


@settings(frozen=True, kw_only=True, config=_STRICT)
class DistillSettings(TrainingSettings, LossSettings):
    """Settings of a distillation.

    Attributes:
        share_after: share of the steps after which the layer groups of an ALBERT student are one.
    """

    share_after: float = Field(default=0.3, ge=0, le=1)

    @property
    def training(self) -> TrainingSettings:
        """Those of the run alone."""
        return TrainingSettings(**_fields(self, TrainingSettings))


@settings(frozen=True, kw_only=True, config=_STRICT)
class DistillOptions(DistillSettings, StudentSettings, AugmentationSettings):
    """All that can be set of a distillation besides teacher, student and data."""

    @property
    def sizes(self) -> StudentSettings:
        """Those of the student alone."""
        return StudentSettings(**_fields(self, StudentSettings))


@settings(frozen=True, kw_only=True, config=_STRICT)
class QuantizeAwareSettings(TrainingSettings):
    """Settings of quantization-aware training.

    Attributes:
        epochs: passes over the train texts; 0 leaves the training out.
        learning_rate: peak of the schedule; small, since the model is trained already.
        weight_decay: of AdamW.
        bf16: off; a step of bfloat16 is coarser than one of int8.
        alpha: weight of the labels; 1 - alpha is that of the fp32 model's answers.
        temperature: T of these.
    """

    epochs: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    learning_rate: float = Field(default=3e-5, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    bf16: Literal[False] = False
    alpha: float = Field(default=0.1, ge=0, le=1)
    temperature: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    @property
    def training(self) -> TrainingSettings:
        """Those of the run alone."""
        return TrainingSettings(**_fields(self, TrainingSettings))


def _fields(instance: object, kind: type[Any]) -> dict[str, Any]:
    return {field.name: getattr(instance, field.name) for field in fields(kind)}
