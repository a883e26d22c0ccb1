"""Seeded faults: bundles and inputs damaged one way each, and the check that has to catch it.

Damage is done to a sound bundle and, but for what happens on the way to a device, before it is
sealed with its checksums, as a fault of the pipeline would be. `python tests/test_faults.py` writes
the table in docs/validation.md.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from safetensors.torch import load_file, save_file

from edgebert import pipeline
from edgebert.calibration import Dataset, Row, load_data
from edgebert.calibration.dataset import shipped_folders
from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.bundle import Bundle, describe_file
from edgebert.pipeline.gates import Limits, judge
from edgebert.pipeline.recipe import CalibrationSettings
from edgebert.pipeline.runtimes.onnx_file import check_int8
from edgebert.pipeline.runtimes.run import Classifier, RunError, check
from edgebert.pipeline.runtimes.tflite_file import TfliteFile
from edgebert.pipeline.runtimes.tflite_rewrite import write_tflite
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.bundle import BundleInputs, write_bundle
from edgebert.pipeline.stages.calibrate import calibration_notes, calibration_rows
from edgebert.pipeline.stages.conformance import (
    check_onnx,
    check_tflite,
    sample_inputs,
    torch_logits,
)
from edgebert.pipeline.stages.export_litert import ExportLitert, check_operators
from edgebert.pipeline.stages.export_onnx import ExportOnnx, _check_shapes
from edgebert.pipeline.stages.golden import Golden
from edgebert.pipeline.stages.load import load_model, resolve_model
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.pipeline.stages.reference import Reference, ReferenceLogits, encode_rows, run_torch
from edgebert.pipeline.stages.validate import Validate
from edgebert.pipeline.stages.wrapper import ExportModule
from edgebert.targets import Format
from edgebert.targets.errors import EdgebertError

DOCUMENT = Path(__file__).parent.parent / "docs" / "validation.md"
MARKS = ("<!-- faults: begin -->\n", "<!-- faults: end -->\n")
CHECKS = ("export", "checksum", "runtime", "drift", "golden", "input")
MAX_DROP = 0.05
Array = np.ndarray[Any, Any]
Alarms = dict[str, str]


@dataclass(frozen=True)
class Sound:
    """Bundles without a fault, and what they are held to.

    Attributes:
        inputs: the fp32 bundle's, in both formats.
        int8: the ONNX file in int8.
        bundles: `fp32` and `int8`.
        data: 60 texts that the checkpoint itself labels, without a doubt.
        reference: its logits.
    """

    inputs: BundleInputs
    int8: Model
    bundles: dict[str, Path]
    data: Dataset
    reference: ReferenceLogits

    @property
    def checkpoint(self) -> Checkpoint:
        return self.inputs.checkpoint


@dataclass(frozen=True)
class Fault:
    """One way to go wrong.

    Attributes:
        name: what was done.
        caught_by: check -> what its message says; no other check has to notice it.
        alarms: damages a copy in a folder and returns the messages of every check.
    """

    name: str
    caught_by: Alarms
    alarms: Callable[[Sound, Path], Alarms] = field(repr=False)


@pytest.fixture(scope="module")
def sound(tiny_bundle_inputs: BundleInputs, tmp_path_factory: pytest.TempPathFactory) -> Sound:
    folder, inputs = tmp_path_factory.mktemp("sound"), tiny_bundle_inputs
    checkpoint = inputs.checkpoint
    lines = (shipped_folders()["clinc150"] / "test.jsonl").read_text(encoding="utf-8").splitlines()
    words = [json.loads(line)["text"].split()[:4] for line in lines[::40]]
    rows = tuple(Row(" ".join(word).capitalize()) for word in words)
    logits = np.stack(run_torch(checkpoint, encode_rows(checkpoint.tokenizer, rows, 64)))
    ranked = np.sort(logits, axis=1)
    clear = np.argsort(ranked[:, -2] - ranked[:, -1], kind="stable")[:60]
    labels = checkpoint.labels
    test = tuple(replace(rows[i], label=labels[logits[i].argmax()]) for i in sorted(clear))
    data = Dataset("mine", (), test, test, "")
    int8 = QuantizeOnnx(find_scheme("dynamic_wi8c_afp32", "onnx"))(
        checkpoint, inputs.models[0], (), folder / "int8"
    )
    quantized = replace(
        inputs,
        models=(int8,),
        golden=Golden()(checkpoint, {"onnx": int8}, test, folder / "golden"),
    )
    bundles = {
        "fp32": write_bundle(inputs, folder / "fp32").path,
        "int8": write_bundle(quantized, folder / "int8-bundle").path,
    }
    reference = Reference("test")(checkpoint, data, folder / "reference")
    return Sound(inputs, int8, bundles, data, reference)


# --- what every check says of a bundle


def said(call: Callable[[], object]) -> str:
    try:
        call()
    except (EdgebertError, RunError) as error:
        return str(error)
    return ""


def examine(sound: Sound, folder: Path, format: Format) -> Alarms:
    """The messages of the checks that a bundle does not pass."""
    alarms: Alarms = {}
    if message := said(lambda: Bundle.open(folder)):
        return {"checksum": message}
    bundle = Bundle.open(folder)
    if message := said(lambda: Classifier(folder, format)):
        return {"runtime": message}
    alarms["export"] = said(lambda: conform(bundle, format, sound.checkpoint))
    faults = check(folder, Classifier(folder, format))["faults"]
    alarms["golden"] = "; ".join(faults[:3])
    stage = Validate()
    measured = stage(sound.checkpoint, bundle.model(format), sound.data, sound.reference, bundle)
    (gate,) = judge(Limits(MAX_DROP), format, measured)
    alarms["drift"] = "" if gate.passed else gate.message
    return {name: message for name, message in alarms.items() if message}


def conform(bundle: Bundle, format: Format, checkpoint: Checkpoint) -> None:
    """What an export or a quantization is held to before it leaves its stage."""
    file = bundle.file(format)
    if bundle.info(format).scheme != "fp32":
        if format == "onnx" and bundle.info(format).scheme != "fp16":
            check_int8(onnx.load(file), str(file))
        return
    model = load_model(checkpoint)
    if format == "tflite":
        for length in bundle.info(format).lengths:
            inputs = sample_inputs(checkpoint, 3, length)
            check_tflite(file, inputs, torch_logits(model, inputs))
        return
    inputs = sample_inputs(checkpoint, 4, 24)
    check_onnx(file, inputs, torch_logits(model, inputs))


def reseal(folder: Path) -> None:
    """Give a damaged bundle the checksums of its files, as if it had been made like that."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name in manifest["files"]:
        manifest["files"][name] = describe_file(folder / name).model_dump()
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def bundle_fault(
    damage: Callable[[Path], object],
    bundle: str = "fp32",
    format: Format = "onnx",
    sealed: bool = False,
) -> Callable[[Sound, Path], Alarms]:
    """Damage files of a bundle; `sealed`: after its checksums were taken."""

    def alarms(sound: Sound, folder: Path) -> Alarms:
        shutil.copytree(sound.bundles[bundle], folder / "bundle")
        damage(folder / "bundle")
        if not sealed:
            reseal(folder / "bundle")
        return examine(sound, folder / "bundle", format)

    return alarms


def graph_fault(
    damage: Callable[[Any], object], bundle: str = "fp32"
) -> Callable[[Sound, Path], Alarms]:
    """Damage the ONNX graph of a bundle."""

    def on_file(folder: Path) -> None:
        proto = onnx.load(folder / "model.onnx")
        damage(proto)
        onnx.save(proto, folder / "model.onnx")

    return bundle_fault(on_file, bundle)


def input_fault(
    call: Callable[[Sound, Path], object], check: str = "input"
) -> Callable[[Sound, Path], Alarms]:
    """What is refused, or noted: the call raises, or returns the notes."""

    def alarms(sound: Sound, folder: Path) -> Alarms:
        notes: list[object] = []
        message = said(lambda: notes.append(call(sound, folder))) or str(notes[0] or "")
        return {check: message} if message else {}

    return alarms


# --- damage to an ONNX graph


def tensors(proto: Any, *parts: str) -> Iterator[Any]:
    found = [t for t in proto.graph.initializer if all(part in t.name for part in parts)]
    assert found, parts
    yield from found


def edit(proto: Any, parts: Sequence[str], change: Callable[[Array], Array]) -> None:
    for tensor in tensors(proto, *parts):
        value = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(change(value).astype(value.dtype), tensor.name))


def edits(parts: str, change: Callable[[Array], Array]) -> Callable[[Any], None]:
    return lambda proto: edit(proto, parts.split(" "), change)


def swap_inputs(proto: Any) -> None:
    other = {"attention_mask": "token_type_ids", "token_type_ids": "attention_mask"}
    for node in proto.graph.node:
        node.input[:] = [other.get(name, name) for name in node.input]


def ignore_input(proto: Any, name: str, with_ones: bool) -> None:
    """Compute with a constant in place of an input."""
    for node in proto.graph.node:
        node.input[:] = ["constant_input" if used == name else used for used in node.input]
    value = onnx.helper.make_tensor("value", TensorProto.INT64, [1], [int(with_ones)])
    make = onnx.helper.make_node
    proto.graph.node.insert(0, make("ConstantOfShape", ["its_shape"], ["constant_input"]))
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("value", value))
    proto.graph.node.insert(0, make("Shape", [name], ["its_shape"]))


def repeat_layer(proto: Any) -> None:
    first = {t.name: t for t in tensors(proto, "encoder.layer.0.")}
    for tensor in tensors(proto, "encoder.layer.1."):
        name = tensor.name
        tensor.CopyFrom(first[name.replace("layer.1.", "layer.0.")])
        tensor.name = name


def freeze_input(proto: Any) -> None:
    shape = next(i for i in proto.graph.input if i.name == "attention_mask").type.tensor_type.shape
    shape.dim[0].dim_value, shape.dim[1].dim_value = 2, 16


def rename_input(proto: Any) -> None:
    for value in proto.graph.input:
        value.name = value.name.replace("attention_mask", "mask")
    for node in proto.graph.node:
        node.input[:] = ["mask" if name == "attention_mask" else name for name in node.input]


def other_activation(proto: Any) -> None:
    for node in proto.graph.node:
        if node.op_type == "Gelu":
            node.op_type = "Relu"
            del node.attribute[:]


def newer_opset(proto: Any) -> None:
    proto.opset_import[0].version = 99


def first_to_nan(value: Array) -> Array:
    value = value.copy()
    value.flat[0] = np.nan
    return value


def zero_points(proto: Any) -> None:
    """Add 40 to the zero point of every weight."""
    edit(proto, ["weight", "_zero_point"], lambda value: value + 40)


def overflow(sound: Sound, folder: Path) -> Alarms:
    """Weights that fp32 holds and fp16 does not, where the function stays much the same."""
    fp32 = sound.inputs.models[0]
    proto = onnx.load(fp32.file)
    edit(proto, ["layer.1.intermediate.dense.weight"], lambda w: w * 3e4)
    edit(proto, ["layer.1.output.dense.weight"], lambda w: w / 3e4)
    (folder / "large").mkdir()
    onnx.save(proto, folder / "large" / "model.onnx")
    large = Model.write_info(folder / "large", fp32.info)
    half = QuantizeOnnx(find_scheme("fp16", "onnx"))(sound.checkpoint, large, (), folder / "fp16")
    shutil.copytree(sound.bundles["int8"], folder / "bundle")
    shutil.copyfile(half.file, folder / "bundle" / "model.onnx")
    edit_manifest(lambda m: m["models"]["onnx"].update(scheme="fp16"))(folder / "bundle")
    reseal(folder / "bundle")
    return examine(sound, folder / "bundle", "onnx")


# --- damage to other files of a bundle


def edit_json(name: str, change: Callable[[Any], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        data = json.loads((folder / name).read_text(encoding="utf-8"))
        change(data)
        (folder / name).write_text(json.dumps(data), encoding="utf-8")

    return damage


def edit_manifest(change: Callable[[Any], object]) -> Callable[[Path], None]:
    return edit_json("manifest.json", change)


def edit_tokenizer(change: Callable[[Any], object]) -> Callable[[Path], None]:
    return edit_json("tokenizer.json", change)


def shift_vocabulary(tokenizer: Any) -> None:
    """Lose a line of the vocabulary: every later id is one too small."""
    vocabulary, special = (
        tokenizer["model"]["vocab"],
        {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"},
    )
    for token, index in vocabulary.items():
        if token not in special and index > 5:
            vocabulary[token] = index - 1


def cut_half(folder: Path, name: str = "model.onnx") -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])


def flip_byte(folder: Path) -> None:
    content = bytearray((folder / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.onnx").write_bytes(bytes(content))


def external(damage: Callable[[Path], object], sealed: bool) -> Callable[[Sound, Path], Alarms]:
    """Weights in a file of their own, and that file damaged."""

    def alarms(sound: Sound, folder: Path) -> Alarms:
        bundle = folder / "bundle"
        shutil.copytree(sound.bundles["fp32"], bundle)
        proto = onnx.load(bundle / "model.onnx")
        onnx.save(
            proto,
            bundle / "model.onnx",
            save_as_external_data=True,
            location="model.onnx.data",
            size_threshold=1000,
        )

        def with_data(manifest: Any) -> None:
            manifest["models"]["onnx"]["external_data"] = ["model.onnx.data"]
            manifest["files"]["model.onnx.data"] = {}

        edit_manifest(with_data)(bundle)
        reseal(bundle)
        damage(bundle / "model.onnx.data")
        if not sealed:
            reseal(bundle)
        return examine(sound, bundle, "onnx")

    return alarms


def zero_fill(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def zero_tflite(folder: Path) -> None:
    """Zero the largest stored tensors of the .tflite file."""
    tflite = TfliteFile(folder / "model.tflite")
    for buffer in tflite.model.buffers:
        if buffer.data is not None and len(buffer.data) == 64 * 32 * 4:
            buffer.data = np.zeros(len(buffer.data), np.uint8)
    write_tflite(tflite.model, folder / "model.tflite")


# --- damage to what a build reads


def copied(sound: Sound, folder: Path) -> Path:
    return Path(shutil.copytree(sound.checkpoint.path, folder / "checkpoint"))


def load_damaged(damage: Callable[[Path], object]) -> Callable[[Sound, Path], object]:
    def call(sound: Sound, folder: Path) -> None:
        model = copied(sound, folder)
        damage(model)
        resolve_model(str(model), work=folder / "work")

    return call


def edit_weights(model: Path, change: Callable[[dict[str, Any]], object]) -> None:
    weights = load_file(model / "model.safetensors")
    change(weights)
    save_file(weights, model / "model.safetensors", {"format": "pt"})


def validate_damaged(damage: Callable[[Path], object]) -> Callable[[Sound, Path], object]:
    """Notes of the report of a checkpoint that was wrong before anything was built."""

    def call(sound: Sound, folder: Path) -> str:
        model = copied(sound, folder)
        damage(model)
        checkpoint = Checkpoint(model, "damaged")
        reference = Reference("test")(checkpoint, sound.data, folder / "reference")
        report = Validate()(checkpoint, sound.inputs.models[0], sound.data, reference)
        return "\n".join(report.notes)

    return call


def calibrate(texts: Callable[[Sound], Sequence[str]]) -> Callable[[Sound, Path], object]:
    def call(sound: Sound, folder: Path) -> str:
        train = tuple(Row(text, "bad") for text in texts(sound))
        data = replace(sound.data, train=train)
        rows = calibration_rows(sound.checkpoint, data, CalibrationSettings(), 32)
        return "\n".join(calibration_notes(sound.checkpoint, data, rows))

    return call


def calibrate_in_german(sound: Sound, folder: Path) -> str:
    """With the shipped model, whose tokenizer can spell German."""
    albert = Checkpoint(Path(str(files(pipeline) / "models" / "albert")), "albert")
    data = replace(load_data("clinc150"), train=tuple(Row(text) for text in GERMAN))
    rows = calibration_rows(albert, data, CalibrationSettings(), 32)
    return "\n".join(calibration_notes(albert, data, rows))


def overlapping(sound: Sound, folder: Path) -> str:
    lines = [json.dumps({"text": row.text, "label": row.label}) for row in sound.data.test]
    own = [json.dumps({"text": f"my bank card {i}", "label": "bad"}) for i in range(20)]
    for name, content in (("train", own + lines[:7]), ("dev", own[:9]), ("test", lines)):
        (folder / f"{name}.jsonl").write_text("\n".join(content), encoding="utf-8")
    data = load_data(str(folder))
    drawn = calibration_rows(sound.checkpoint, data, CalibrationSettings(), 32)
    leaked = {tuple(row.ids) for row in encode_rows(sound.checkpoint.tokenizer, data.test, 32)}
    assert not leaked & {row.ids for row in drawn}
    return "\n".join(data.notes)


def empty_file(sound: Sound, folder: Path) -> object:
    (folder / "train.csv").write_text("text,label\n", encoding="utf-8")
    return load_data(str(folder / "train.csv"))


def unknown_label(sound: Sound, folder: Path) -> object:
    rows = (Row("wake me up", "goood"), *sound.data.test)
    data = replace(sound.data, test=rows)
    reference = Reference("test")(sound.checkpoint, data, folder)
    return Validate()(sound.checkpoint, sound.inputs.models[0], data, reference) and ""


def dropout(sound: Sound, folder: Path) -> None:
    inputs = sample_inputs(sound.checkpoint, 4, 24)
    logits = torch_logits(load_model(sound.checkpoint).train(), inputs)
    check_onnx(sound.inputs.models[0].file, inputs, logits)


def frozen(sound: Sound, folder: Path) -> None:
    proto = onnx.load(sound.inputs.models[0].file)
    freeze_input(proto)
    info = sound.inputs.models[0].info
    dims = {
        i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim]
        for i in proto.graph.input
    }
    _check_shapes([i.model_copy(update={"shape": tuple(dims[i.name])}) for i in info.inputs])


def old_tflite_runtime(sound: Sound, folder: Path) -> None:
    operators = sound.inputs.models[1].info.operators
    name, version = max(operators.items(), key=lambda item: item[1])
    check_operators(operators, {name: version - 1}, "raspberry-pi-armv7")


def sizes(sound: Sound, folder: Path) -> str:
    (gate,) = judge(Limits(max_size_mb=0.01), "onnx", size_mb=sound.inputs.models[0].size_mb)
    return "" if gate.passed else gate.message


def reversed_names(model: Path) -> None:
    names = {"0": "good", "1": "bad", "2": "so so"}  # the model learned bad, so so, good
    edit_json("config.json", lambda c: c.update(id2label=names, label2id={}))(model)


OFF = "a logit is off by"
DIFFERS = "the exported graph differs from PyTorch by"
DROP = "limit 0.05"
IDS = "other token ids"
EVERYWHERE = {"export": DIFFERS, "drift": DROP, "golden": OFF}
QUANTIZED = {"drift": DROP, "golden": OFF}
GERMAN = (
    "wie wird das wetter morgen in berlin",
    "bitte überweise fünfzig euro auf mein sparkonto",
    "spiel mir bitte etwas ruhige musik vor",
    "wo ist die nächste tankstelle",
    "stelle den wecker auf sieben uhr",
    "ich möchte einen tisch für zwei personen reservieren",
    "wann fährt der letzte zug nach hamburg",
    "mein konto wurde gesperrt, was soll ich tun",
    "welche termine habe ich heute nachmittag",
)
CHINESE = [f"东京今天的天气{one}怎么样{two}" for one in "一二三四五六" for two in "吗呢吧啊"]
FEW_TEXTS = "calibration texts are distinct and have a known token"

FAULTS = (
    # on the way to a device
    Fault(
        "one bit of the model file flipped",
        {"checksum": "model.onnx does not match its checksum"},
        bundle_fault(flip_byte, sealed=True),
    ),
    Fault(
        "model file cut in half",
        {"checksum": "model.onnx has"},
        bundle_fault(cut_half, sealed=True),
    ),
    Fault(
        "tokenizer left behind",
        {"checksum": "tokenizer.json is missing"},
        bundle_fault(lambda f: (f / "tokenizer.json").unlink(), sealed=True),
    ),
    Fault(
        "external data left behind",
        {"checksum": "model.onnx.data is missing"},
        external(Path.unlink, True),
    ),
    Fault(
        "external data cut short",
        {"checksum": "model.onnx.data has"},
        external(lambda f: f.write_bytes(f.read_bytes()[:-64]), True),
    ),
    Fault(
        "external data full of zeros",
        {"checksum": "model.onnx.data does not match its checksum"},
        external(zero_fill, True),
    ),
    Fault(
        "manifest of another version",
        {"checksum": "schema version 2"},
        bundle_fault(edit_manifest(lambda m: m.update(schema_version=2)), sealed=True),
    ),
    # in the export
    Fault("mask and token types swapped", EVERYWHERE, graph_fault(swap_inputs)),
    Fault(
        "mask ignored",
        {"export": DIFFERS},
        graph_fault(lambda p: ignore_input(p, "attention_mask", True)),
    ),
    Fault(
        "token types ignored",
        {"export": DIFFERS},
        graph_fault(lambda p: ignore_input(p, "token_type_ids", False)),
    ),
    Fault(
        "positions off by one",
        EVERYWHERE,
        graph_fault(edits("position_embeddings", lambda w: np.roll(w, 1, 0))),
    ),
    Fault(
        "word table off by one row",
        EVERYWHERE,
        graph_fault(edits("word_embeddings", lambda w: np.roll(w, 1, 0))),
    ),
    Fault("a layer of zeros", EVERYWHERE, graph_fault(edits("encoder.layer.1.", np.zeros_like))),
    Fault("one layer twice", EVERYWHERE, graph_fault(repeat_layer)),
    Fault("another activation", {"export": DIFFERS, "golden": OFF}, graph_fault(other_activation)),
    Fault(
        "LayerNorm without its weight",
        EVERYWHERE,
        graph_fault(edits("LayerNorm.weight", np.ones_like)),
    ),
    Fault(
        "labels of the head in another order",
        EVERYWHERE,
        graph_fault(edits("classifier.", lambda w: w[::-1])),
    ),
    Fault(
        "a weight that is no number",
        {"export": DIFFERS, "drift": "NaN or infinite logits", "golden": "off by nan"},
        graph_fault(edits("pooler.dense.bias", first_to_nan)),
    ),
    Fault(
        "external data full of zeros before it was sealed", EVERYWHERE, external(zero_fill, False)
    ),
    Fault("dropout left on", {"export": DIFFERS}, input_fault(dropout, "export")),
    Fault(
        "one input frozen at the length of the trace",
        {"export": "attention_mask [2, 16]"},
        input_fault(frozen, "export"),
    ),
    Fault(
        "an input under another name",
        {"runtime": "inputs that nothing feeds: mask"},
        graph_fault(rename_input),
    ),
    Fault(
        "opset newer than the runtime's",
        {"runtime": "onnxruntime cannot load"},
        graph_fault(newer_opset),
    ),
    Fault(
        "model file cut in half before it was sealed",
        {"runtime": "onnxruntime cannot load"},
        bundle_fault(cut_half),
    ),
    Fault(
        "TFLite file cut in half before it was sealed",
        {"runtime": "ai-edge-litert cannot load"},
        bundle_fault(lambda f: cut_half(f, "model.tflite"), format="tflite"),
    ),
    Fault("TFLite matrices of zeros", EVERYWHERE, bundle_fault(zero_tflite, format="tflite")),
    Fault(
        "operator newer than the target's runtime",
        {"input": "the target's runtime is too old for"},
        input_fault(old_tflite_runtime),
    ),
    # in the quantization
    Fault(
        "saturated int8 weights",
        QUANTIZED,
        graph_fault(edits("_quantized", lambda w: np.clip(w.astype(int) * 16, -127, 127)), "int8"),
    ),
    Fault("wrong zero point", QUANTIZED, graph_fault(zero_points, "int8")),
    Fault(
        "scales of another layer",
        QUANTIZED,
        graph_fault(edits("layer.1. weight.T_scale", lambda s: s * 8), "int8"),
    ),
    Fault(
        "scale of a mask constant",
        {"export": "scales out of range"} | QUANTIZED,
        graph_fault(edits("query.weight.T_scale", lambda s: s * np.inf), "int8"),
    ),
    Fault("numbers beyond the range of fp16", QUANTIZED, overflow),
    # in the packaging
    Fault(
        "tokenizer with the case of another model",
        {"golden": IDS, "drift": DROP},
        bundle_fault(edit_tokenizer(lambda t: t["normalizer"].update(lowercase=False))),
    ),
    Fault(
        "accents kept",
        {"golden": IDS},
        bundle_fault(edit_tokenizer(lambda t: t["normalizer"].update(strip_accents=False))),
    ),
    Fault(
        "special tokens dropped",
        {"golden": IDS, "drift": DROP},
        bundle_fault(edit_tokenizer(lambda t: t.update(post_processor=None))),
    ),
    Fault(
        "a line of the vocabulary lost",
        {"golden": IDS, "drift": DROP},
        bundle_fault(edit_tokenizer(shift_vocabulary)),
    ),
    Fault(
        "labels of the manifest in another order",
        {"golden": "not in the order of the model's ids"},
        bundle_fault(edit_manifest(lambda m: m["labels"].reverse())),
    ),
    Fault(
        "texts cut to 6 tokens",
        {"golden": "texts are cut to 6 tokens", "drift": DROP},
        bundle_fault(edit_manifest(lambda m: m["models"]["onnx"].update(max_length=6))),
    ),
    Fault(
        "padding on the wrong side",
        {"golden": OFF},
        bundle_fault(edit_manifest(lambda m: m.update(pads_left=True)), format="tflite"),
    ),
    Fault(
        "golden rows lost",
        {"golden": "golden.jsonl has no rows"},
        bundle_fault(lambda f: (f / "golden.jsonl").write_text("")),
    ),
    # in what a build reads
    Fault(
        "a drop in percent",
        {"input": "for 1 points write 0.01"},
        input_fault(lambda s, f: Limits(1.0)),
    ),
    Fault("a file over the limit of its size", {"input": "FAILED"}, input_fault(sizes)),
    Fault("no calibration rows in the file", {"input": "0 usable rows"}, input_fault(empty_file)),
    Fault(
        "calibration on padding alone",
        {"input": f"0 of 12 {FEW_TEXTS}"},
        input_fault(calibrate(lambda s: ["[PAD]" * n for n in range(1, 13)])),
    ),
    Fault(
        "calibration on one row",
        {"input": "1 usable train rows"},
        input_fault(calibrate(lambda s: ["play music"] * 50)),
    ),
    Fault(
        "calibration on one row in many spellings",
        {"input": f"1 of 12 {FEW_TEXTS}"},
        input_fault(calibrate(lambda s: ["\u200b" * n + "play music" for n in range(12)])),
    ),
    Fault(
        "calibration in another script",
        {"input": f"0 of 24 {FEW_TEXTS}"},
        input_fault(calibrate(lambda s: CHINESE)),
    ),
    Fault(
        "calibration in another language",
        {"input": "are they in another language?"},
        input_fault(calibrate_in_german),
    ),
    Fault(
        "test rows among the train rows",
        {"input": "test rows also stand in train"},
        input_fault(overlapping),
    ),
    Fault(
        "a label that the model does not know",
        {"input": "unknown label 'goood'"},
        input_fault(unknown_label),
    ),
    Fault(
        "label names in another order than trained",
        {"input": "are its labels in the order"},
        input_fault(validate_damaged(reversed_names)),
    ),
    Fault(
        "checkpoint with a tokenizer of another language",
        {"input": "unknown to the tokenizer"},
        input_fault(
            validate_damaged(
                edit_tokenizer(
                    lambda t: t.update(
                        normalizer={
                            "type": "Replace",
                            "pattern": {"Regex": "[a-z]+"},
                            "content": "\u6771",
                        }
                    )
                )
            )
        ),
    ),
    Fault(
        "a label id left out",
        {"input": "id2label has the ids [0, 2]"},
        input_fault(
            load_damaged(
                edit_json(
                    "config.json",
                    lambda c: c.update(id2label={"0": "bad", "2": "good"}, label2id={}),
                )
            )
        ),
    ),
    Fault(
        "checkpoint without its head",
        {"input": "classifier.weight"},
        input_fault(load_damaged(lambda m: edit_weights(m, lambda w: w.pop("classifier.weight")))),
    ),
    Fault(
        "checkpoint cut short",
        {"input": "model.safetensors"},
        input_fault(load_damaged(lambda m: cut_half(m, "model.safetensors"))),
    ),
    Fault(
        "checkpoint with a weight that is no number",
        {"input": "own fp32 logits are not finite"},
        input_fault(
            validate_damaged(
                lambda m: edit_weights(m, lambda w: w["classifier.bias"].fill_(float("nan")))
            )
        ),
    ),
    Fault(
        "tokenizer with more tokens than the model",
        {"input": "the word embedding 160 rows"},
        input_fault(load_damaged(edit_tokenizer(lambda t: t["model"]["vocab"].update(late=160)))),
    ),
)


@pytest.mark.parametrize("bundle", ["fp32", "int8"])
def test_a_sound_bundle_raises_no_alarm(sound: Sound, bundle: str) -> None:
    opened = Bundle.open(sound.bundles[bundle])
    for format in opened.formats:
        assert examine(sound, opened.path, format) == {}
    spread = {row.label for row in sound.data.test}
    assert spread == set(sound.checkpoint.labels), "damage could not change the answers"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught(sound: Sound, fault: Fault, tmp_path: Path) -> None:
    alarms = fault.alarms(sound, tmp_path)
    for name, message in fault.caught_by.items():
        assert message in alarms.get(name, ""), alarms


@pytest.mark.parametrize("exporter", [ExportOnnx(), ExportLitert((16,))], ids=["onnx", "tflite"])
def test_an_exporter_that_swaps_inputs_is_stopped(
    sound: Sound, exporter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ExportModule.forward

    def swapped(
        self: ExportModule, input_ids: Any, attention_mask: Any, token_type_ids: Any
    ) -> Any:
        return right(self, input_ids, token_type_ids, attention_mask)

    monkeypatch.setattr(ExportModule, "forward", swapped)
    with pytest.raises(EdgebertError, match=DIFFERS):
        exporter(sound.checkpoint, tmp_path / "model")


def matrix() -> str:
    """The table of docs/validation.md."""
    lines = [
        "| Fault | " + " | ".join(CHECKS) + " | Message |",
        "|---|" + ":-:|" * len(CHECKS) + "---|",
    ]
    for fault in FAULTS:
        cells = ["x" if name in fault.caught_by else "" for name in CHECKS]
        message = next(iter(fault.caught_by.values()))
        lines.append(f"| {fault.name} | {' | '.join(cells)} | {message} |")
    return "\n".join(lines) + "\n"


def split_document() -> tuple[str, str, str]:
    """docs/validation.md before, in and after the table."""
    text = DOCUMENT.read_text(encoding="utf-8")
    found = re.search(rf"(?s)^(.*{MARKS[0]})(.*)({MARKS[1]}.*)$", text)
    assert found, "docs/validation.md has lost its marks"
    return found[1], found[2], found[3]


def test_the_table_is_up_to_date() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 25
    assert split_document()[1] == matrix(), "run `python tests/test_faults.py`"


if __name__ == "__main__":
    before, _, after = split_document()
    DOCUMENT.write_text(before + matrix() + after, encoding="utf-8")
