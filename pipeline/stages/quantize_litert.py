"""Quantize TFLite: ai-edge-quantizer on the file, NNCF's static scheme on the checkpoint."""

import math
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.schemes import Scheme, SchemeError
from edgebert.pipeline.stages.export_litert import check_operators
from edgebert.targets.errors import InputError

# A larger scale means that a mask constant was taken for an activation.
MAX_SCALE = 1e4


@dataclass(frozen=True)
class QuantizeLitert:
    """Quantize one model.

    Attributes:
        scheme: what to do.
        max_op_versions: newest version of an operator that the runtime has, where it is limited.
    """

    scheme: Scheme
    max_op_versions: Mapping[str, int] = field(default_factory=dict)

    def __call__(
        self, checkpoint: Checkpoint, fp32: Model, calibration: Sequence[TokenRow], out: Path
    ) -> Model:
        """Write the quantized `model.tflite`, with the signatures of `fp32`.

        Args:
            checkpoint: what `fp32` was exported from; NNCF starts from it.
            fp32: the exported model.
            calibration: rows of training text, for a scheme that is calibrated.
            out: the folder to write.

        Raises:
            InputError: a calibrated scheme has no rows, or the runtime lacks what the result needs.
            SchemeError: a matrix stayed fp32, or a scale is not usable.
        """
        from edgebert.pipeline.runtimes.tflite_file import TfliteFile
        from edgebert.pipeline.runtimes.tflite_loop import roll
        from edgebert.pipeline.runtimes.tflite_rewrite import (
            correct_versions,
            float_outputs,
            merge_rounding_twins,
            store_in_int8,
            tidy,
            widen_left_operands,
            write_tflite,
        )

        if self.scheme.calibrated and not calibration:
            raise InputError(
                f"{self.scheme.name} needs calibration texts, and there are 0 usable rows",
                "train split",
                "give data with a train split, or choose a dynamic scheme",
            )
        out.mkdir(parents=True, exist_ok=True)
        file = out / "model.tflite"
        file.unlink(missing_ok=True)
        if self.scheme.tool == "nncf":
            from edgebert.pipeline.stages.static_litert import write_static

            static = out / "static.tflite"
            write_static(checkpoint, fp32.info.lengths, calibration, static)
            quantize_file(static, _dynamic(operation="EMBEDDING_LOOKUP"), file)
            static.unlink()
        else:
            quantize_file(fp32.file, RECIPES[self.scheme.name](), file)
        tflite = TfliteFile(file)
        float_outputs(tflite.model)
        widen_left_operands(tflite.model)
        store_in_int8(tflite.model)
        merge_rounding_twins(tflite.model)
        tidy(tflite.model)
        if roll(tflite.model):
            tidy(tflite.model)  # the new subgraphs' names and counters
        correct_versions(tflite.model)
        write_tflite(tflite.model, file)
        check_stored(tflite, self.scheme)
        check_operators(tflite.operators, self.max_op_versions, str(file))
        return Model.write_info(out, tflite.info(self.scheme.name, checkpoint.max_length))


def _dynamic(
    granularity: str = "CHANNELWISE", hadamard: bool = False, operation: str = "ALL_SUPPORTED"
) -> Any:
    from ai_edge_quantizer import qtyping, recipe_manager
    from ai_edge_quantizer.algorithm_manager import AlgorithmName

    manager = recipe_manager.RecipeManager()
    name = "DECOMPOSED_HADAMARD_ROTATION" if hadamard else "MIN_MAX_UNIFORM_QUANT"
    manager.add_dynamic_config(
        regex=".*",
        operation_name=qtyping.TFLOperationName[operation],
        num_bits=8,
        granularity=qtyping.QuantGranularity(granularity),
        algorithm_key=AlgorithmName[name],
    )
    return manager.get_quantization_recipe()


def _weight_only() -> Any:
    from ai_edge_quantizer import recipe

    return recipe.weight_only_wi8_afp32()


# Scheme -> recipe of ai-edge-quantizer.
RECIPES: dict[str, Any] = {
    "dynamic_wi8c_afp32": _dynamic,
    "dynamic_wi8t_afp32": lambda: _dynamic("TENSORWISE"),
    "dynamic_wi8c_hr_afp32": lambda: _dynamic(hadamard=True),
    "weight_only_wi8c_afp32": _weight_only,
}


def quantize_file(source: Path, recipe: Any, out: Path) -> None:
    """Run ai-edge-quantizer from one file to another."""
    from ai_edge_quantizer import quantizer

    tool = quantizer.Quantizer(str(source), recipe)
    with redirect_stderr(StringIO()):  # one of its progress bars has no switch
        tool.quantize(
            serialize_to_path=str(out), enable_progress_bar=False, enable_progress_report=False
        )


def check_stored(tflite: Any, scheme: Scheme) -> None:
    """What every int8 artifact has to hold.

    Raises:
        SchemeError: a matrix over 10,000 elements is stored in fp32, or a scale is infinite,
            negative, or so large that a mask constant must have been calibrated.
    """
    left = [t for t in tflite.stored if t.is_large and t.dtype not in ("int8", "int4")]
    if left:
        sizes = ", ".join(f"{t.dtype} {t.shape}" for t in left[:3])
        raise SchemeError(
            f"{scheme.name}: {len(left)} matrices are not stored in int8: {sizes}",
            str(tflite.file),
            "choose another scheme",
        )
    for name, scales in tflite.scales.items():
        wrong = [s for s in scales if not (math.isfinite(s) and 0 <= s < MAX_SCALE)]
        if wrong:
            raise SchemeError(
                f"{scheme.name}: {name} has a scale of {wrong[0]}",
                str(tflite.file),
                "choose another scheme",
            )
