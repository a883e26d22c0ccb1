"""Run a bundle: tokenizer, model file, label. No torch, no transformers, no edgebert.

This one file is copied into every bundle, and edgebert validates and measures with it, so that
what is measured is what ships. It needs Python 3.9, numpy, tokenizers, and onnxruntime,
ai-edge-litert or tflite-runtime. Import it (`from run import Classifier`), or run it:
`python run.py TEXT`, `--check`, `--measure`, `--rows FILE`; `--help` has the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import numpy as np
except ImportError as error:
    sys.exit(f"run.py cannot import numpy: {error}\nREADME.md has the pip command for this bundle.")

# Execution providers of onnxruntime by the name that `--provider` takes, best first.
PROVIDERS = {
    "cpu": ["CPUExecutionProvider"],
    "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"],
    "tensorrt": ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"],
}
# Measured runs are made in so many turns.
TURNS = 5
# A model of one operator: what the runtime itself takes when it starts. Identity of opset 15, Tanh.
ONE_NODE = {
    ".onnx": bytes.fromhex(
        "08083a370a100a017812017922084964656e746974791201675a0f0a0178120a0a080801"
        "12040a020801620f0a0179120a0a08080112040a02080142040a00100f"
    ),
    ".tflite": bytes.fromhex(
        "1800000054464c3300000e00140010000c000800000004000e000000100000001c000000b400000003000000"
        "0100000008000000040004000400000001000000100000000c00140010000c00080004000c00000010000000"
        "3c0000004000000044000000010000001000000000000a000c000000080004000a000000080000000c000000"
        "0100000001000000010000000000000001000000010000000100000000000000020000002000000004000000"
        "eeffffff04000000010000000100000000000600080004000600000004000000010000000100000001000000"
        "100000000c000c000b000000000004000c0000001c0000000000001c"
    ),
}
TFLITE_PACKAGES = {"ai_edge_litert": "ai-edge-litert", "tflite_runtime": "tflite-runtime"}


class RunError(Exception):
    """What stops a run; exit code 2: the input is wrong, 3: the machine lacks something."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def _needed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise RunError(f"{module.split('.')[0]} is not installed: {error}", 3) from error
    except (
        Exception
    ) as error:  # built for another NumPy: ImportError, AttributeError or SystemError
        raise RunError(f"{module} does not load with numpy {np.__version__}: {error}", 3) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0]


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module.split(".")[0]) is not None


def runtime_module(suffix: str) -> str:
    """Module that runs files of a suffix; of the two for .tflite, the one that is installed."""
    if suffix == ".onnx":
        return "onnxruntime"
    module = next((m for m in TFLITE_PACKAGES if _installed(m)), "ai_edge_litert")
    return f"{module}.interpreter"


@dataclass(frozen=True)
class Encoded:
    """A text as the model takes it: special tokens included, no padding.

    Attributes:
        ids, type_ids: token ids and segment ids.
        truncated: True where the text was longer than the model takes.
        offsets: (start, end) of each token in its text, in characters; (0, 0) for special tokens.
        word_ids: index of each token's word; None for special tokens.
    """

    ids: list[int]
    type_ids: list[int]
    truncated: bool
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]


def read_tokenizer(file: Path) -> Any:
    """A `tokenizers.Tokenizer` that neither pads nor truncates by itself."""
    try:
        tokenizer = _needed("tokenizers").Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"cannot read the tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def encode(
    tokenizer: Any, text: str | Sequence[str], text_pair: str | None, max_length: int
) -> Encoded:
    """Tokens of a text, a pair, or a list of words.

    A too long one loses its last tokens, not the final separator; of a pair the longer loses first.
    """
    words = not isinstance(text, str)
    found = tokenizer.encode(text, text_pair, is_pretokenized=words)
    truncated = len(found.ids) > max_length
    if truncated:
        tokenizer.enable_truncation(max_length, strategy="longest_first")
        found = tokenizer.encode(text, text_pair, is_pretokenized=words)
        tokenizer.no_truncation()
    return Encoded(found.ids, found.type_ids, truncated, found.offsets, found.word_ids)


class Session:
    """A loaded model file; `open_session` makes one.

    Attributes:
        runtime: name and version of what runs it.
        padding: how rows are padded, in words.
        lengths: token lengths that rows are padded to, ascending; empty where rows are not padded.
    """

    runtime = ""
    padding = "none, batch 1"
    lengths: tuple[int, ...] = ()
    pad_id = 0
    pads_left = False
    _dtypes: dict[str, Any]  # input name -> the type that the file itself declares

    def _run(self, feed: dict[str, Any]) -> Any:
        raise NotImplementedError

    def run(self, feed: dict[str, Any]) -> Any:
        """Logits of a batch, row by row, from input arrays as `feed` makes them."""
        return np.asarray(self._run(feed), np.float32)

    def logits(self, ids: Sequence[int], type_ids: Sequence[int]) -> Any:
        """Logits of one row as an array: float32 [labels], or [seq, labels] of its own tokens."""
        feed, start = self.feed(ids, type_ids)
        result = self.run(feed)[0]
        return result[start : start + len(ids)] if result.ndim == 2 else result

    def feed(
        self, ids: Sequence[int], type_ids: Sequence[int], padded: int = 0
    ) -> tuple[dict[str, Any], int]:
        """Input arrays [1, length] of one row, and where in them its tokens start.

        `padded` is the least length, for who wants more padding than a row needs.
        """
        count = len(ids)
        least = max(count, padded)
        # Without padding, a text that has no token at all is a row of one padding token.
        length = next((n for n in self.lengths or (max(least, 1),) if n >= least), None)
        if length is None:
            raise RunError(f"{count} tokens, and the model takes {self.lengths[-1]}")
        start = length - count if self.pads_left else 0
        feed = {}
        for name, values, fill in (
            ("input_ids", ids, self.pad_id),
            ("attention_mask", [1] * count, 0),
            ("token_type_ids", type_ids or [0] * count, 0),
        ):
            if name in self._dtypes:
                feed[name] = np.full((1, length), fill, self._dtypes[name])
                feed[name][0, start : start + count] = values
        return feed, start

    def _check_inputs(self, file: Path) -> None:
        unknown = sorted(set(self._dtypes) - {"input_ids", "attention_mask", "token_type_ids"})
        if unknown:
            raise RunError(f"{file.name} has inputs that nothing feeds: {', '.join(unknown)}")


class OnnxSession(Session):
    """An ONNX file on onnxruntime, one unpadded row at a time."""

    def __init__(self, file: Path, threads: int, provider: str, allow_cpu: bool) -> None:
        ort = _needed("onnxruntime")
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        # Compute in int8 with weights in int8 blocks (MatMulNBits), do not dequantize at each run.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "4")
        has = ort.get_available_providers()
        wanted = [name for name in PROVIDERS[provider] if name in has]
        try:
            self._session = ort.InferenceSession(str(file), options, providers=wanted)
        except Exception as error:  # onnxruntime's own exception types differ between versions
            raise RunError(f"onnxruntime cannot load {file}: {_first_line(error)}") from error
        # It falls back to the CPU without an error: what it took is known only after the fact.
        took = self._session.get_providers()[0]
        if took != PROVIDERS[provider][0] and not allow_cpu:
            raise RunError(f"asked for {provider}, got {took}; --allow-cpu accepts that", 3)
        types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
        self._dtypes = {i.name: types.get(i.type, np.float32) for i in self._session.get_inputs()}
        self._check_inputs(file)
        self.runtime = f"onnxruntime {ort.__version__}" + f" ({took})" * (provider != "cpu")

    def _run(self, feed: dict[str, Any]) -> Any:
        return self._session.run(None, feed)[0]

    def outputs(self, ids: Sequence[int], type_ids: Sequence[int]) -> dict[str, Any]:
        """Every output of one row by its name, for a file with more outputs than the logits."""
        names = [output.name for output in self._session.get_outputs()]
        values = self._session.run(None, self.feed(ids, type_ids)[0])
        return dict(zip(names, values))  # noqa: B905


class TfliteSession(Session):
    """A .tflite file on LiteRT or tflite-runtime, padded to the shortest signature that fits."""

    def __init__(self, file: Path, threads: int) -> None:
        module = runtime_module(".tflite")
        package = TFLITE_PACKAGES[module.split(".")[0]]
        make = _needed(module).Interpreter
        try:
            # Kept: the runners do not keep it alive.
            self._interpreter = make(model_path=str(file), num_threads=threads)
            names = self._interpreter.get_signature_list()
            runners = [self._interpreter.get_signature_runner(name) for name in names]
            inputs = [runner.get_input_details() for runner in runners]  # name -> shape, dtype, ...
        except SystemError as error:  # "returned a result with an exception set"
            raise RunError(f"{package} was not built for numpy {np.__version__}", 3) from error
        except Exception as error:  # a broken file is a ValueError or a RuntimeError by version
            raise RunError(f"{package} cannot load {file}: {_first_line(error)}") from error
        if not runners:
            raise RunError(f"{file} has no signatures")
        self._dtypes = {name: detail["dtype"] for name, detail in inputs[0].items()}
        self._check_inputs(file)
        lengths = [_length(name, d["input_ids"]) for name, d in zip(names, inputs)]  # noqa: B905
        self._runners = dict(zip(lengths, runners))  # noqa: B905 (strict= needs Python 3.10)
        self.lengths = tuple(sorted(lengths))
        self.runtime = f"{package} {importlib.metadata.version(package)}"

    def _run(self, feed: dict[str, Any]) -> Any:
        # Where one graph serves all lengths, the runner resizes it to what it is fed: LiteRT keeps
        # the packed weights, tflite-runtime packs them anew where the length is not the last one's.
        (output,) = self._runners[feed["input_ids"].shape[1]](**feed).values()
        return output


def _length(signature: str, ids: dict[str, Any]) -> int:
    """Token length of a signature: in its name, since its input may be of any, else the input's."""
    named = re.fullmatch(r"s(\d+)", signature)
    return int(named[1] if named else ids["shape"][1])


def open_session(
    model_file: Path,
    threads: int = 1,
    pad_id: int = 0,
    pads_left: bool = False,
    provider: str = "cpu",
    allow_cpu: bool = False,
) -> Session:
    """Load model.onnx or model.tflite.

    Args:
        model_file: the file; its suffix says which runtime.
        threads: threads of one inference.
        pad_id: token id of padding.
        pads_left: True where padding goes before the text.
        provider: a key of `PROVIDERS`, for ONNX.
        allow_cpu: accept the CPU where the provider is not there.

    Raises:
        RunError: no such file, no runtime for it, or the runtime refuses it.
    """
    if not model_file.is_file():
        raise RunError(f"no such file: {model_file}")
    session: Session
    if model_file.suffix == ".tflite":
        session = TfliteSession(model_file, threads)
        side, sizes = "left" if pads_left else "right", ", ".join(map(str, session.lengths))
        session.padding = f"{side}, to {sizes} tokens, batch 1"
    else:
        session = OnnxSession(model_file, threads, provider, allow_cpu)
    session.pad_id, session.pads_left = pad_id, pads_left
    return session


def interpret(task: str, labels: Sequence[str], logits: Any) -> dict[str, Any]:
    """What logits say: `value` (regression), `labels` (several), or `label` and `score`."""
    logits = np.asarray(logits, np.float64)
    if task == "regression":
        return {"value": float(logits[0]) if len(logits) == 1 else logits.tolist()}
    if task == "multi_label":
        scores = dict(zip(labels, np.exp(-np.logaddexp(0, -logits)).tolist()))  # noqa: B905
        return {"labels": [name for name in labels if scores[name] >= 0.5], "scores": scores}
    shares = np.exp(logits - logits.max())
    scores = dict(zip(labels, (shares / shares.sum()).tolist()))  # noqa: B905
    label = max(labels, key=scores.__getitem__)
    return {"label": label, "score": scores[label], "scores": scores}


class Classifier:
    """A bundle, ready to use.

    Args:
        bundle: its folder.
        format: as in `pick_format`.
        threads: threads of one inference; by default what the target says.
        provider, allow_cpu: as in `open_session`.

    Raises:
        RunError: not a bundle, or its runtime is missing.
    """

    def __init__(
        self,
        bundle: Path,
        format: str | None = None,
        threads: int | None = None,
        provider: str = "cpu",
        allow_cpu: bool = False,
    ) -> None:
        self.manifest: dict[str, Any] = _manifest(bundle)
        self.format = pick_format(self.manifest, format)
        model = self.manifest["models"][self.format]
        self.max_length: int = model["max_length"]
        self.threads: int = threads or self.manifest["target"]["threads"]
        require_runtime(self.manifest, self.format)
        self.tokenizer = read_tokenizer(bundle / "tokenizer.json")
        self.session = open_session(
            bundle / model["file"],
            self.threads,
            self.manifest["pad_id"],
            self.manifest["pads_left"],
            provider,
            allow_cpu,
        )

    def predict(self, text: str, text_pair: str | None = None) -> dict[str, Any]:
        """`interpret`'s answer; for token classification `tags`, one entry a token."""
        encoded = encode(self.tokenizer, text, text_pair, self.max_length)
        logits = self.session.logits(encoded.ids, encoded.type_ids)
        task, labels = self.manifest["task"], self.manifest["labels"]
        found: dict[str, Any] = {"text": text, "truncated": encoded.truncated}
        if task != "token":
            return {**found, **interpret(task, labels, logits)}
        tags = []
        for index, (start, end) in enumerate(encoded.offsets):
            if encoded.word_ids[index] is not None:
                tag = interpret("single_label", labels, logits[index])
                tags.append(
                    {"token": text[start:end], "label": tag["label"], "score": tag["score"]}
                )
        return {**found, "tags": tags}


def _manifest(bundle: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((bundle / "manifest.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise RunError(f"{bundle} is not a bundle: {error}") from error


def pick_format(manifest: dict[str, Any], format: str | None = None) -> str:
    """The format asked for, else the first that the bundle has and whose runtime is installed."""
    models = list(manifest["models"])
    here = [name for name in models if _installed(runtime_module(f".{name}"))]
    if format and format not in models:
        raise RunError(f"the bundle has no {format}, it has {', '.join(models)}")
    return format or (here or models)[0]


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file."""
    number = 0
    try:
        with file.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):  # noqa: B007 (an error names it)
                if line.strip():
                    yield dict(json.loads(line))
    except OSError as error:
        raise RunError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise RunError(f"{file}, line {number}: not a JSON object ({error})") from error


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    if file.is_file():
        with file.open("rb") as stream:  # in pieces: a whole model would count as peak memory
            while piece := stream.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def altered_files(bundle: Path, manifest: dict[str, Any]) -> list[str]:
    """Names of the files that are not as the manifest describes them."""
    return [n for n, entry in manifest["files"].items() if _sha256(bundle / n) != entry["sha256"]]


def require_whole(bundle: Path) -> None:
    """Refuse a bundle that was altered on its way here."""
    altered = altered_files(bundle, _manifest(bundle))
    if altered:
        raise RunError(f"{altered[0]} is not the file that the manifest describes")


def require_runtime(manifest: dict[str, Any], format: str) -> None:
    """Refuse a runtime older than the lowest that the manifest names (`onnxruntime 1.18`)."""
    name, _, lowest = manifest["models"][format].get("minimum_runtime", "").rpartition(" ")
    package = runtime_module(f".{format}").split(".")[0]
    # LiteRT counts its versions anew; its first is newer than TensorFlow Lite's last.
    if not lowest or (name, package) not in (
        ("onnxruntime", "onnxruntime"),
        ("TensorFlow Lite", "tflite_runtime"),
    ):
        return
    has = str(_needed(package).__version__)
    numbers = [[int(part) for part in re.findall(r"\d+", text)[:2]] for text in (has, lowest)]
    if numbers[0] < numbers[1]:
        raise RunError(f"{package} {has} is older than {lowest}, which model.{format} needs", 3)


def check(bundle: Path, classifier: Classifier) -> dict[str, Any]:
    """Prove a bundle on this machine: checksums, token ids, label order, logits.

    Returns:
        `passed`; `max_abs`, the largest difference of a logit; its `tolerance`; `faults`, in words.
    """
    manifest, altered = classifier.manifest, altered_files(bundle, classifier.manifest)
    faults = [f"{name} is not the file that the manifest describes" for name in altered]
    tolerance = manifest["models"][classifier.format]["golden_tolerance"]
    max_abs, count = 0.0, 0
    for row in read_lines(bundle / "golden.jsonl"):
        count += 1
        if classifier.max_length < row["max_length"]:
            faults.append(
                f"texts are cut to {classifier.max_length} tokens, not {row['max_length']}"
            )
            break
        name = f"row {count} ({row['text'][:40]!r})"
        encoded = encode(classifier.tokenizer, row["text"], row["text_pair"], row["max_length"])
        if (encoded.ids, encoded.type_ids) != (row["ids"], row["type_ids"]):
            faults.append(f"{name}: other token ids")
        expected = np.array(row[classifier.format], np.float32)
        logits = classifier.session.logits(row["ids"], row["type_ids"])
        if logits.shape != expected.shape:
            faults.append(f"{name}: logits {logits.shape}, not {expected.shape}")
            continue
        difference = float(np.abs(logits - expected).max(initial=0.0))
        if not difference <= tolerance:  # this way round, NaN is a fault too
            faults.append(f"{name}: a logit is off by {difference:.3g}")
        names = [manifest["labels"][i] for i in np.atleast_2d(row["reference"]).argmax(1)]
        if manifest["task"] != "regression" and names != row["labels"]:
            faults.append(f"{name}: the labels are not in the order of the model's ids")
        max_abs = max(max_abs, difference)
    if not count:
        faults.append("golden.jsonl has no rows")
    return {
        "passed": not faults,
        "format": classifier.format,
        "runtime": classifier.session.runtime,
        "rows": count,
        "max_abs": max_abs,
        "tolerance": tolerance,
        "faults": faults,
    }


def memory_mb(name: str) -> float:
    """`VmRSS` (now) or `VmHWM` (highest so far) in MB; getrusage would count the parent too."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split(f"{name}:")[1].split()[0]) * 1024 / 1e6
    except OSError:  # not Linux
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _start(suffix: str) -> None:
    """Start the runtime of a suffix: what it takes by itself is no model's memory."""
    runtime, model = _needed(runtime_module(suffix)), ONE_NODE[suffix]
    if suffix == ".onnx":
        runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    else:
        with suppress(SystemError):  # built for another NumPy: the session says so
            interpreter = runtime.Interpreter(model_content=model)
            interpreter.allocate_tensors()
            interpreter.invoke()


def measure(
    files: Sequence[Path], tokens: int, threads: int, runs: int, warmups: int, **options: Any
) -> list[dict[str, Any]]:
    """Load time, latency and memory of model files.

    They take turns, so that a busy machine slows all alike. Memory is told of the first file only,
    since the others share its process.
    """
    _start(files[0].suffix)
    bare_mb = memory_mb("VmRSS")
    ids, zeros = [1] * tokens, [0] * tokens  # which tokens they are does not change the time
    sessions: list[Session] = []
    results: list[dict[str, Any]] = []
    times = []

    def run_ms(session: Session) -> float:
        start = time.perf_counter()
        session.logits(ids, zeros)
        return (time.perf_counter() - start) * 1e3

    for file in files:
        start = time.perf_counter()
        session = open_session(file, threads, **options)
        result = {
            "file": file.name,
            "runtime": session.runtime,
            "machine": machine(),
            "tokens": tokens,
            "threads": threads,
            "runs": runs,
            "warmups": warmups,
            "load_ms": (time.perf_counter() - start) * 1e3,
            "first_run_ms": run_ms(session),
        }
        for _ in range(warmups):
            run_ms(session)
        if not results:
            result.update({"bare_mb": bare_mb, "peak_mb": memory_mb("VmHWM")})
        sessions.append(session)
        results.append(result)
        times.append(np.zeros(0))
    for turn in range(TURNS):
        for index, session in enumerate(sessions):
            run_ms(session)  # the other file's turn has emptied the caches
            share = runs // TURNS + (turn < runs % TURNS)
            times[index] = np.append(times[index], [run_ms(session) for _ in range(share)])
    for index, result in enumerate(results):
        result.update({f"p{p}_ms": float(np.percentile(times[index], p)) for p in (50, 90, 99)})
    return results


def machine() -> str:
    """The processor, as the machine names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        names = [x.split(":", 1)[1].strip() for x in lines if x.startswith(("model name", "Model"))]
    except OSError:
        names = []
    return f"{platform.machine()} {names[0] if names else platform.processor()}".strip()


def origin(bundle: Path, classifier: Classifier) -> dict[str, Any]:
    """What rows were run with; the first line of their file."""
    return {
        "bundle": _sha256(bundle / "manifest.json"),
        "format": classifier.format,
        "runtime": classifier.session.runtime,
        "padding": classifier.session.padding,
        "machine": machine(),
    }


def run_rows(
    bundle: Path, classifier: Classifier, file: Path, out: Path | None, probe: Path | None = None
) -> None:
    """Logits of a JSON lines file (`id`, and `text` or `ids`); goes on where `out` ends.

    The first line says what they were made with, and rows of another bundle or machine are never
    mixed with these. With `probe`, every output of that ONNX file in place of the logits.
    """
    first, started, done = origin(bundle, classifier), False, set()
    if out and out.is_file():
        with out.open("rb+") as stream:  # a line cut short by a kill goes
            stream.truncate(stream.read().rfind(b"\n") + 1)
        lines = list(read_lines(out))
        if lines and lines[0] != first:
            raise RunError(f"{out} has rows of another bundle, runtime or machine: remove it")
        started, done = bool(lines), {row["id"] for row in lines[1:]}
    session = classifier.session
    if probe:
        session = OnnxSession(probe, classifier.threads, "cpu", True)
    with out.open("a", encoding="utf-8") if out else nullcontext(sys.stdout) as stream:
        if not started:
            print(json.dumps(first), file=stream, flush=True)
        for row in read_lines(file):
            if row["id"] in done:
                continue
            ids, types, cut = row.get("ids"), row.get("type_ids", []), False
            if ids is None:
                text = row.get("tokens") or row["text"]
                found = encode(
                    classifier.tokenizer, text, row.get("text_pair"), classifier.max_length
                )
                ids, types, cut = found.ids, found.type_ids, found.truncated
            answer: dict[str, Any] = {"id": row["id"], "truncated": cut}
            if isinstance(session, OnnxSession) and probe:
                values = session.outputs(ids, types)
                answer["outputs"] = {name: value.tolist() for name, value in values.items()}
            else:
                answer["logits"] = session.logits(ids, types).tolist()
            print(json.dumps(answer), file=stream, flush=True)


def _texts(given: Sequence[str], pair: bool) -> Iterator[list[str]]:
    """The texts, or the pairs of them, of the command line, else of the lines of standard input."""
    size = 2 if pair else 1
    if not given:
        for line in sys.stdin:
            yield line.rstrip("\n").split("\t", 1) if pair else [line.rstrip("\n")]
    for start in range(0, len(given), size):
        yield [text.encode("utf-8", "replace").decode() for text in given[start : start + size]]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run a bundle; one JSON line per text.")
    add = parser.add_argument
    add("text", nargs="*", help="texts; without any, one a line on standard input")
    add("--pair", action="store_true", help="texts two by two, or two a line with a tab between")
    add("--check", action="store_true", help="prove the bundle with golden.jsonl; else exit 1")
    add("--measure", action="store_true", help="load time, latency and peak memory")
    add("--rows", type=Path, metavar="FILE", help="logits of the rows of a JSON lines file")
    add("--out", type=Path, metavar="FILE", help="append rows here, and skip those it has")
    add("--outputs", type=Path, metavar="FILE", help="with --rows: outputs of this ONNX file")
    add("--bundle", type=Path, default=Path(__file__).parent, help="default: this file's folder")
    add("--model", type=Path, nargs="+", help="with --measure: these files, taking turns")
    add("--format", choices=("onnx", "tflite"))
    add("--threads", type=int, help="default: what the target says")
    add("--provider", choices=sorted(PROVIDERS), default="cpu", help="of onnxruntime")
    add("--allow-cpu", action="store_true", help="accept the CPU where the provider is missing")
    add("--tokens", type=int, default=32, help="tokens of a measured row")
    add("--runs", type=int, default=50)
    add("--warmups", type=int, default=5)
    return parser


def _command(arguments: argparse.Namespace) -> int:
    how = {"provider": arguments.provider, "allow_cpu": arguments.allow_cpu}
    bundle, runs = arguments.bundle, (arguments.runs, arguments.warmups)
    if arguments.measure:
        if min(arguments.runs, arguments.tokens) < 1:
            raise RunError("--runs and --tokens begin at 1")
        files, threads = arguments.model, arguments.threads or 1
        if not files:
            require_whole(bundle)
            manifest = _manifest(bundle)
            format = pick_format(manifest, arguments.format)
            require_runtime(manifest, format)
            model = manifest["models"][format]
            files, threads = (
                [bundle / model["file"]],
                arguments.threads or manifest["target"]["threads"],
            )
        for result in measure(files, arguments.tokens, threads, *runs, **how):
            print(json.dumps(result))
        return 0
    classifier = Classifier(bundle, arguments.format, arguments.threads, **how)
    if arguments.check:
        result = check(bundle, classifier)
        print(json.dumps(result, ensure_ascii=False))
        return 0 if result["passed"] else 1
    if arguments.rows:
        require_whole(bundle)
        run_rows(bundle, classifier, arguments.rows, arguments.out, arguments.outputs)
        return 0
    for texts in _texts(arguments.text, arguments.pair):
        if len(texts) != 1 + arguments.pair:
            raise RunError("--pair takes texts two by two, or two a line with a tab between")
        print(json.dumps(classifier.predict(*texts), ensure_ascii=False), flush=True)
    return 0


def main() -> int:
    """The command line; returns the exit code."""
    arguments = _parser().parse_args()
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        return _command(arguments)
    except RunError as error:
        print(f"run.py: {error}", file=sys.stderr)
        if error.exit_code == 3 and (arguments.bundle / "manifest.json").is_file():
            for format, needs in _manifest(arguments.bundle)["requirements"].items():
                packages = " ".join(f'"{need}"' for need in needs)
                if arguments.format in (None, format):
                    print(f"  for {format}: pip install {packages}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
