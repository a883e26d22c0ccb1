"""Quantize TFLite: ai-edge-quantizer on the file, NNCF's static scheme on the checkpoint."""

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow
from edgebert.pipeline.runtimes.stored_tensor import LARGE, Layer
from edgebert.pipeline.schemes import Scheme, SchemeError, mixed_name
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
        fp32_layers: names of the layers that are left in fp32.
        rolled: whether signatures become one graph, and layers that share their weights one WHILE;
            written out, what each depth computes can be read.
    """

    scheme: Scheme
    max_op_versions: Mapping[str, int] = field(default_factory=dict)
    fp32_layers: tuple[str, ...] = ()
    rolled: bool = True

    @property
    def mixable(self) -> bool:
        """True where the scheme quantizes layer by layer, each of which can be left in fp32."""
        return self.scheme.name in MIXABLE

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
            SchemeError: a matrix stayed fp32, a scale is not usable, or layers should stay in fp32
                and this scheme has no such form.
        """
        from edgebert.pipeline.runtimes.tflite_file import TfliteFile
        from edgebert.pipeline.runtimes.tflite_heads import keep_batch
        from edgebert.pipeline.runtimes.tflite_lengths import merge_lengths
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
        kept = self._restore(checkpoint, fp32, tflite.model) if self.fp32_layers else set()
        if self.scheme.block_size:
            self._store_in_blocks(checkpoint, fp32, calibration, tflite.model)
        float_outputs(tflite.model)
        widen_left_operands(tflite.model)
        store_in_int8(tflite.model, kept)
        merge_rounding_twins(tflite.model)
        tidy(tflite.model)
        if self.rolled:
            keep_batch(tflite.model)
            merge_lengths(tflite.model)
            roll(tflite.model)
            tidy(tflite.model)  # the new subgraphs' names and constants
        correct_versions(tflite.model)
        write_tflite(tflite.model, file)
        check_stored(tflite, self.scheme, {hashlib.sha256(data).hexdigest() for data in kept})
        check_operators(tflite.operators, self.max_op_versions, self.scheme.name)
        name = mixed_name(self.scheme.name) if self.fp32_layers else self.scheme.name
        return Model.write_info(out, tflite.info(name, checkpoint.max_length))

    def layers(self, checkpoint: Checkpoint, fp32: Model) -> tuple[Layer, ...]:
        """What can be quantized or left in fp32 by itself."""
        from edgebert.pipeline.runtimes.tflite_file import TfliteFile
        from edgebert.pipeline.stages.tflite_mixed import find_layers

        return tuple(find_layers(TfliteFile(fp32.file).model, checkpoint).values())

    def one_by_one(
        self, checkpoint: Checkpoint, fp32: Model, calibration: Sequence[TokenRow], folder: Path
    ) -> Iterator[tuple[Layer, Path]]:
        """Each layer with a file in which it alone is quantized; the next one takes its place.

        Raises:
            SchemeError: the scheme adds operators, and has no such form.
        """
        from edgebert.pipeline.runtimes.tflite_file import TfliteFile
        from edgebert.pipeline.runtimes.tflite_rewrite import write_tflite
        from edgebert.pipeline.stages.tflite_mixed import find_layers, restore

        before = TfliteFile(fp32.file).model
        every, file = folder / "quantized.tflite", folder / "model.tflite"
        quantize_file(fp32.file, RECIPES[self.scheme.name](), every)
        for buffer, layer in find_layers(before, checkpoint).items():
            after = TfliteFile(every).model
            restore(before, after, set(range(len(before.buffers))) - {buffer})
            write_tflite(after, file)
            yield layer, file

    def _store_in_blocks(
        self, checkpoint: Checkpoint, fp32: Model, calibration: Sequence[TokenRow], quantized: Any
    ) -> None:
        from edgebert.pipeline.runtimes.tflite_file import TfliteFile
        from edgebert.pipeline.stages.gptq import input_moments
        from edgebert.pipeline.stages.tflite_blocks import store_in_blocks
        from edgebert.pipeline.stages.tflite_mixed import find_layers

        before = TfliteFile(fp32.file).model
        layers, moments = None, None
        if self.scheme.error_feedback:
            layers = find_layers(before, checkpoint)
            moments = input_moments(checkpoint, calibration)
        store_in_blocks(before, quantized, self.scheme.block_size, layers, moments)

    def _restore(self, checkpoint: Checkpoint, fp32: Model, quantized: Any) -> set[bytes]:
        """Put the layers that stay in fp32 back; the bytes of their matrices."""
        from edgebert.pipeline.runtimes.tflite_file import TfliteFile
        from edgebert.pipeline.stages.tflite_mixed import find_layers, restore

        if not self.mixable:
            raise SchemeError(f"{self.scheme.name} leaves no layer in fp32")
        before = TfliteFile(fp32.file).model
        layers = find_layers(before, checkpoint)
        buffers = {index for index, layer in layers.items() if layer.name in self.fp32_layers}
        restore(before, quantized, buffers)
        return {bytes(before.buffers[index].data) for index in buffers}


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
    # int8 for what then becomes no int4 block
    "dynamic_wi4b64_afp32": _dynamic,
    "dynamic_wi4b64_afp32_gptq": _dynamic,
}


# Types of a large matrix; fp16 is for the scales of blocks, no operator reads it.
STORED = ("int8", "int4", "float16")
# With these ranges the quantizer changes stored tensors and nothing else.
MIXABLE = ("dynamic_wi8c_afp32", "dynamic_wi8t_afp32")


def quantize_file(source: Path, recipe: Any, out: Path) -> None:
    """Run ai-edge-quantizer from one file to another, all but small tables by `recipe`."""
    from ai_edge_quantizer import quantizer

    tool = quantizer.Quantizer(str(source), _keep_small_tables(source, recipe))
    with redirect_stderr(StringIO()):  # one of its progress bars has no switch
        tool.quantize(
            serialize_to_path=str(out), enable_progress_bar=False, enable_progress_report=False
        )


def _keep_small_tables(source: Path, recipe: Any) -> Any:
    """A recipe by which tables of at most `LARGE` elements stay in fp32.

    The one of token types takes a few kilobytes, and its error is added to every token alike. In
    bge-small-zh one channel of it is 134 times the median: its error was four times all others.
    """
    from ai_edge_quantizer import qtyping, recipe_manager
    from ai_edge_quantizer.algorithm_manager import AlgorithmName

    from edgebert.pipeline.runtimes.tflite_file import TfliteFile, operator_name, shape_of, text_of

    model = TfliteFile(source).model
    manager = recipe_manager.RecipeManager()
    manager.load_quantization_recipe(recipe)
    for graph in model.subgraphs:
        for operator in graph.operators:
            name = operator_name(model.operatorCodes[operator.opcodeIndex])
            table = graph.tensors[operator.inputs[1]] if name == "EMBEDDING_LOOKUP" else None
            if table is not None and math.prod(shape_of(table)) <= LARGE:
                manager.add_quantization_config(
                    f"^{re.escape(text_of(graph.tensors[operator.outputs[0]].name))};",
                    qtyping.TFLOperationName.EMBEDDING_LOOKUP,
                    algorithm_key=AlgorithmName.NO_QUANTIZE,
                )
    return manager.get_quantization_recipe()


def check_stored(tflite: Any, scheme: Scheme, fp32_sha256: Collection[str] = ()) -> None:
    """What every int8 artifact has to hold.

    Args:
        tflite: the parsed artifact.
        scheme: how it was made.
        fp32_sha256: hashes of the matrices that may be in fp32.

    Raises:
        SchemeError: a matrix over 10,000 elements is stored in fp32, or a scale is infinite,
            negative, or so large that a mask constant must have been calibrated.
    """
    left = [
        t
        for t in tflite.stored
        if t.is_large and t.dtype not in STORED and t.sha256 not in fp32_sha256
    ]
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
