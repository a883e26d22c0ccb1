"""Tiny random checkpoints of every family, what PyTorch makes of them, and the command line."""

import json
import os
import string
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from adb_phone import AdbServer, Phone
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from edgebert.calibration.dataset import Row, shipped_folders
from edgebert.pipeline.artifact import Checkpoint, Model
from edgebert.pipeline.bundle import SourceEntry
from edgebert.pipeline.families import find_family
from edgebert.pipeline.stages.bundle import BundleInputs
from edgebert.pipeline.stages.checkpoints import save_checkpoint
from edgebert.pipeline.stages.load import load_model
from edgebert.targets import Format, load_target

# Two workers share two cores: more threads would only wait for each other. Children inherit both.
torch.set_num_threads(1)
os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

VOCAB_SIZE = 160
COMMON_WORDS = """
the a i is my to what do you me for can on of in how please tell it need and have would like know
s get that from be when there any are if set time many long will card your much account name find
bank credit this use at want with make should show up help change new good bad film not was book
flight weather play music day
"""

HEAD_BIASES = ("classifier.bias", "classifier.out_proj.bias")

TinyCheckpoint = Callable[..., Checkpoint]
Done = subprocess.CompletedProcess[str]


def tiny_tokenizer(pad_id: int = 0, cls_last: bool = False) -> Tokenizer:
    """A real WordPiece tokenizer that spells out what it does not know."""
    specials = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"[unused{i}]" for i in range(pad_id)]
    specials.insert(pad_id, "[PAD]")
    characters = string.ascii_lowercase + string.digits
    pieces = [*characters, *(f"##{c}" for c in characters), *".,!?'-"]
    words = [word for word in COMMON_WORDS.split() if word not in pieces]
    tokens = (specials + pieces + words)[:VOCAB_SIZE]
    tokens += [f"[unused{100 + i}]" for i in range(VOCAB_SIZE - len(tokens))]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    single, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    if cls_last:
        single, pair = "$A [SEP] [CLS]:2", "$A [SEP] $B:1 [SEP]:1 [CLS]:2"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single,
        pair=pair,
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer


def randomize(model: nn.Module, seed: int) -> None:
    """Random biases and LayerNorm weights, and matrices so large that logits are of order 1."""
    generator = torch.Generator().manual_seed(seed)

    def normal(parameter: torch.Tensor, std: float) -> torch.Tensor:
        return torch.randn(parameter.shape, generator=generator) * std

    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if not parameter.requires_grad:  # sinusoids
                    continue
                if "bias" in name:
                    parameter.copy_(normal(parameter, 0.3))
                elif parameter.ndim == 1:  # LayerNorm, or MobileBERT's NoNorm that only scales
                    low = 0.5 if isinstance(module, nn.LayerNorm) else 0.1
                    parameter.copy_(torch.rand(parameter.shape, generator=generator) + low)
                else:
                    fan_in = 1 if isinstance(module, nn.Embedding) else parameter[0].numel()
                    parameter.copy_(normal(parameter, fan_in**-0.5))


def make_tiny_checkpoint(
    model_type: str,
    folder: Path,
    labels: int | Sequence[str] = 3,
    seed: int = 0,
    task: str = "single_label",
    **config_overrides: Any,
) -> Checkpoint:
    """Save a tiny random model of a family as a real checkpoint folder.

    Args:
        model_type: the family.
        folder: where to write it.
        labels: number of labels, or their names.
        seed: of the weights.
        task: `token` for a token classifier.
        config_overrides: fields of the configuration that differ from the family's tiny one.
    """
    names = [f"label_{i}" for i in range(labels)] if isinstance(labels, int) else list(labels)
    family = find_family(model_type)
    fields = family.tiny_config | {"vocab_size": VOCAB_SIZE} | config_overrides
    config = AutoConfig.for_model(
        model_type,
        id2label=dict(enumerate(names)),
        label2id={name: index for index, name in enumerate(names)},
        **fields,
    )
    auto = {"token": AutoModelForTokenClassification}.get(task, AutoModelForSequenceClassification)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = auto.from_config(config)
    randomize(model, seed)
    tokenizer = tiny_tokenizer(int(config.pad_token_id or 0), cls_last=family.pads_left)
    return save_checkpoint(model, tokenizer, folder, f"tiny-{model_type}")


def balance_head(checkpoint: Checkpoint) -> None:
    """Move the head's bias, so that the random model gives all its labels, not always the same."""
    file = checkpoint.path / "model.safetensors"
    tensors = load_file(file)
    bias = next(name for name in HEAD_BIASES if name in tensors)
    tensors[bias] -= text_logits(checkpoint, clinc_texts("train", 60)).mean(0)
    save_file(tensors, file, {"format": "pt"})


@pytest.fixture(scope="session")
def tiny_checkpoint() -> TinyCheckpoint:
    """`tiny_checkpoint(model_type, folder, labels=3, **config_overrides)` saves a checkpoint."""
    return make_tiny_checkpoint


@pytest.fixture(scope="session")
def balanced_checkpoint() -> TinyCheckpoint:
    """As `tiny_checkpoint`, with a model that gives all its labels."""

    def make(*arguments: Any, **settings: Any) -> Checkpoint:
        checkpoint = make_tiny_checkpoint(*arguments, **settings)
        balance_head(checkpoint)
        return checkpoint

    return make


@pytest.fixture(scope="session")
def tiny_bundle_inputs(tmp_path_factory: pytest.TempPathFactory) -> BundleInputs:
    """A tiny BERT exported to both formats, with its golden rows: what a bundle is made of."""
    from edgebert.pipeline.stages.export_litert import ExportLitert
    from edgebert.pipeline.stages.export_onnx import ExportOnnx
    from edgebert.pipeline.stages.golden import Golden

    folder = tmp_path_factory.mktemp("bundle")
    checkpoint = make_tiny_checkpoint("bert", folder / "checkpoint", ["bad", "so so", "good"])
    balance_head(checkpoint)
    onnx_model = ExportOnnx()(checkpoint, folder / "onnx")
    tflite_model = ExportLitert((16, 32))(checkpoint, folder / "tflite")
    rows = tuple(Row(f"the film was {word}", "bad") for word in ("good", "not", "new") * 9)
    models: dict[Format, Model] = {"onnx": onnx_model, "tflite": tflite_model}
    return BundleInputs(
        checkpoint=checkpoint,
        source=SourceEntry(model="tiny", checkpoint_sha256=checkpoint.sha256),
        target=load_target("android-arm64").model_copy(update={"lengths": (16, 32)}),
        models=(onnx_model, tflite_model),
        golden=Golden()(checkpoint, models, rows, folder / "golden"),
        parameters=1,
    )


def pytorch_logits(checkpoint: Checkpoint, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    """Logits of the plain transformers model, called with a mask [batch, seq]."""
    with torch.no_grad():
        logits: np.ndarray = load_model(checkpoint)(**inputs).logits.numpy()
    return logits


@pytest.fixture(scope="session")
def reference() -> Callable[[Checkpoint, dict[str, torch.Tensor]], np.ndarray]:
    """`reference(checkpoint, inputs)`: the logits that every exported file has to give."""
    return pytorch_logits


@dataclass(frozen=True)
class Edgebert:
    """The command as a user runs it: a process of its own, offline, with a cache of the tests'.

    Attributes:
        folder: where it runs.
        cache: its cache.
        model: a tiny random ALBERT whose answers spread over its three labels.
        data: a folder with train, dev and test; the labels are what the model answers.
    """

    folder: Path
    cache: Path
    model: Path
    data: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def start(self, *words: str | Path) -> "subprocess.Popen[str]":
        ours = {"EDGEBERT_CACHE": str(self.cache), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [str(Path(sysconfig.get_path("scripts")) / "edgebert"), *map(str, words)],
            cwd=self.folder,
            env={**os.environ, **ours, **self.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def __call__(self, *words: str | Path, text: str = "", timeout_s: float = 300) -> Done:
        with self.start(*words) as child:
            try:
                stdout, stderr = child.communicate(text, timeout_s)
            except subprocess.TimeoutExpired:
                child.kill()
                raise
        return Done(child.args, child.returncode, stdout, stderr)

    def arguments(self, *words: str | Path, target: str | Path = "android-arm64") -> list[str]:
        """Of a build of the tiny model with its data."""
        ours = ("build", "--model", self.model, "--data", self.data, "--target", target)
        return [*map(str, (*ours, *words))]

    def build(self, *words: str | Path, target: str | Path = "android-arm64") -> Done:
        """Build the tiny model with its data."""
        return self(*self.arguments(*words, target=target))

    def start_build(self, *words: str | Path) -> "subprocess.Popen[str]":
        return self.start(*self.arguments(*words))

    @staticmethod
    def expect_error(done: Any, code: int, *parts: str) -> None:
        """The exit code, and a message of at most three lines after the stages that went well."""
        status = done.returncode if hasattr(done, "returncode") else done.exit_code
        assert status == code, done.stderr
        lines = done.stderr.strip().splitlines()
        message = lines[next(i for i, line in enumerate(lines) if line.startswith("error: ")) :]
        assert len(message) <= 3, done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        for part in parts:
            assert part in "\n".join(message)


def clinc_texts(split: str, count: int) -> list[str]:
    lines = (
        (shipped_folders()["clinc150"] / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    )
    return [json.loads(line)["text"] for line in lines[:: len(lines) // count][:count]]


def text_logits(checkpoint: Checkpoint, texts: Sequence[str]) -> torch.Tensor:
    """Logits [text, label] of the plain transformers model."""
    rows = [torch.tensor([checkpoint.tokenizer.encode(text).ids[:64]]) for text in texts]
    model = load_model(checkpoint)
    with torch.no_grad():
        return torch.cat([model(row).logits for row in rows])


@pytest.fixture(scope="session")
def quick() -> tuple[str, ...]:
    """Options of the quickest build: one format, and a scheme without calibration."""
    scheme = "quantize.scheme=dynamic_wi8c_afp32"
    return ("--format", "onnx", "--set", scheme, "--max-drop", "0.5")


@pytest.fixture(scope="session")
def edgebert(tmp_path_factory: pytest.TempPathFactory) -> Edgebert:
    """The command with a tiny model and its data; one cache for the whole session."""
    folder = tmp_path_factory.mktemp("edgebert")
    checkpoint = make_tiny_checkpoint(
        "albert", folder / "tiny", ("accept_reservations", "account_blocked", "alarm")
    )
    balance_head(checkpoint)
    # Real texts, labeled by the model itself, so that every difference is a drop of accuracy.
    (folder / "data").mkdir()
    for split, count in {"train": 60, "dev": 40, "test": 60}.items():
        texts = clinc_texts(split, count)
        names = [checkpoint.labels[int(row.argmax())] for row in text_logits(checkpoint, texts)]
        rows = [{"text": text, "label": name} for text, name in zip(texts, names, strict=True)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "data" / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    return Edgebert(folder, folder / "cache", checkpoint.path, folder / "data")


@pytest.fixture(scope="session")
def built(edgebert: Edgebert) -> tuple[Path, Done]:
    """A bundle of both formats as `edgebert build --json` made it, and what that printed."""
    done = edgebert.build("--out", "built", "--max-drop", "0.2", "--json")
    assert done.returncode == 0, done.stderr
    return edgebert.folder / "built", done


@pytest.fixture
def phone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Phone]:
    one = Phone(tmp_path / "sdcard")
    with AdbServer(one) as server:
        server.start()
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.server_address[1]))
        yield one
        server.shutdown()
