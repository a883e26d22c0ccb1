"""Loading: what a model name stands for, and every way in which a folder can be wrong."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.catalogue import CatalogueEntry
from edgebert.pipeline.source import find_source
from edgebert.pipeline.stages.load import (
    Load,
    count_parameters,
    has_random_weights,
    load_folder,
    load_model,
    resolve_model,
)
from edgebert.pipeline.stages.random_weights import write_random
from edgebert.targets.errors import InputError, MachineError

UNIGRAM = Path(__file__).parent / "data" / "unigram.model"
SPECIALS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
TinyCheckpoint = Callable[..., Checkpoint]


def edit_config(folder: Path, **fields: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def edit_weights(folder: Path, change: Callable[[str], str | None]) -> None:
    file = folder / "model.safetensors"
    tensors = {change(name): tensor for name, tensor in load_file(file).items()}
    kept = {name: tensor.clone() for name, tensor in tensors.items() if name is not None}
    save_file(kept, file, metadata={"format": "pt"})


def logits(checkpoint: Checkpoint, text: str = "what is the weather") -> torch.Tensor:
    ids = torch.tensor([checkpoint.tokenizer.encode(text).ids])
    with torch.no_grad():
        result: torch.Tensor = load_model(checkpoint)(input_ids=ids).logits
    return result


@pytest.fixture
def bert(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> Checkpoint:
    return tiny_checkpoint("bert", tmp_path / "my-roberta")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def test_a_whole_folder_is_used_in_place(bert: Checkpoint, work: Path) -> None:
    bert.path.chmod(0o555)
    loaded = resolve_model(str(bert.path), work=work)
    bert.path.chmod(0o755)
    assert (loaded.path, loaded.name) == (bert.path, "my-roberta")
    assert list(work.rglob("*.safetensors")) == []


def test_the_family_comes_from_the_configuration(bert: Checkpoint, work: Path) -> None:
    (bert.path / "tokenizer.json").unlink()
    (bert.path / "vocab.txt").write_text(SPECIALS + "good\nbad\n##ly\nfilm\n", encoding="utf-8")
    loaded = resolve_model(str(bert.path), work=work)
    assert loaded.family.model_type == "bert"
    assert loaded.tokenizer.encode("good badly film").ids == [2, 5, 6, 7, 8, 3]


@pytest.mark.parametrize("odd", ["\u2028", ""])
def test_an_odd_line_of_a_vocabulary_shifts_no_id(bert: Checkpoint, work: Path, odd: str) -> None:
    (bert.path / "tokenizer.json").unlink()
    vocabulary = SPECIALS + f"good\n{odd}\nbad\n##ly\nfilm\na\n"
    (bert.path / "vocab.txt").write_text(vocabulary, encoding="utf-8")
    assert resolve_model(str(bert.path), work=work).tokenizer.token_to_id("film") == 9


CASED = SPECIALS + "Apple\napple\nis\nCaf\u00e9\ncafe\n"


def test_lost_upper_case_is_warned_of(bert: Checkpoint, work: Path) -> None:
    (bert.path / "tokenizer.json").unlink()
    (bert.path / "vocab.txt").write_text(CASED, encoding="utf-8")
    work.mkdir()
    load = Load(find_source(str(bert.path)))
    load(work)
    (note,) = load.notes(work)
    assert "lower-cased by default" in note
    tokens = (
        load.result(work).tokenizer.encode("Apple is Caf\u00e9", add_special_tokens=False).tokens
    )
    assert tokens == ["apple", "is", "cafe"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"do_lower_case": False}, ["Apple", "is", "Caf\u00e9"]),
        ({"do_lower_case": True, "strip_accents": False}, ["apple", "is", "[UNK]"]),
    ],
)
def test_a_stated_case_is_kept(
    bert: Checkpoint, work: Path, settings: dict[str, bool], expected: list[str]
) -> None:
    (bert.path / "tokenizer.json").unlink()
    (bert.path / "vocab.txt").write_text(CASED, encoding="utf-8")
    (bert.path / "tokenizer_config.json").write_text(json.dumps(settings))
    work.mkdir()
    load = Load(find_source(str(bert.path)))
    tokens = load(work).tokenizer.encode("Apple is Caf\u00e9", add_special_tokens=False).tokens
    assert (tokens, load.notes(work)) == (expected, ())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("good film", [0, 4, 18, 2]),  # SentencePiece's ids 3 and 17, plus one
        ("", [0, 2]),
        ("\uff21\uff22\uff23 \uff11\uff10\uff10\u339e", [0, 14, 12, 32, 39, 2]),
        ("wait\u2026", [0, 21, 45, 45, 45, 2]),
        ("  good   film ", [0, 4, 18, 2]),
        ("good\u200bfilm", [0, 4, 18, 2]),
        ("\u6771\u4eac\u6771\u4eac", [0, 16, 27, 28, 2]),
    ],
)
@pytest.mark.parametrize("encoder", ["xlm-roberta", "bert"])
def test_sentencepiece_becomes_the_xlm_roberta_tokenizer(
    tiny_checkpoint: TinyCheckpoint,
    tmp_path: Path,
    work: Path,
    encoder: str,
    text: str,
    ids: list[int],
) -> None:
    folder = tiny_checkpoint(encoder, tmp_path / encoder).path
    (folder / "tokenizer.json").unlink()
    shutil.copyfile(UNIGRAM, folder / "sentencepiece.bpe.model")
    settings = {"tokenizer_class": "XLMRobertaTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    loaded = resolve_model(str(folder), work=work)
    assert loaded.tokenizer.encode(text).ids == ids
    assert set(loaded.tokenizer.encode(text, "film").type_ids) == {0}
    assert loaded.has_token_type_ids == (encoder == "bert")  # fed as zeros


def test_roberta_takes_512_tokens_of_514_positions(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("roberta", tmp_path / "r", max_position_embeddings=514)
    assert checkpoint.max_length == 512
    assert not checkpoint.has_token_type_ids
    model = load_model(checkpoint)
    model(input_ids=torch.full((1, 512), 7))
    with pytest.raises((IndexError, RuntimeError)):
        model(input_ids=torch.full((1, 513), 7))
    with pytest.raises((IndexError, RuntimeError)):  # what a pair's second text would be
        model(input_ids=torch.full((1, 4), 7), token_type_ids=torch.ones(1, 4, dtype=torch.long))


def test_a_missing_head_is_refused_by_name(bert: Checkpoint, work: Path) -> None:
    edit_weights(bert.path, lambda name: None if name.startswith("classifier") else name)
    with pytest.raises(InputError, match=r"head: .*classifier\.bias, classifier\.weight"):
        resolve_model(str(bert.path), work=work)
    with pytest.raises(InputError, match=r"classifier\.bias, classifier\.weight"):
        load_model(bert)
    assert resolve_model(str(bert.path), work=work, require_head=False).path == bert.path


def test_a_missing_encoder_tensor_is_refused_by_name(bert: Checkpoint, work: Path) -> None:
    edit_weights(bert.path, lambda name: None if "layer.1.output.dense.weight" in name else name)
    with pytest.raises(InputError, match=r"lack bert\.encoder\.layer\.1\.output\.dense\.weight"):
        resolve_model(str(bert.path), work=work)


def test_a_head_of_another_size_is_refused(bert: Checkpoint, work: Path) -> None:
    edit_config(bert.path, id2label={"0": "a", "1": "b"}, label2id={"a": 0, "b": 1})
    with pytest.raises(InputError, match=r"classifier\.(weight|bias) is \[3"):
        resolve_model(str(bert.path), work=work)


def test_old_names_and_other_heads_are_taken(bert: Checkpoint, work: Path) -> None:
    expected = logits(bert)
    edit_weights(
        bert.path,
        lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ),
    )
    file = bert.path / "model.safetensors"
    extra = load_file(file) | {"cls.predictions.bias": torch.zeros(160)}
    save_file(extra, file, metadata={"format": "pt"})
    assert torch.equal(logits(resolve_model(str(bert.path), work=work)), expected)


def test_copies_of_a_shared_layer_have_to_be_equal(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("albert", tmp_path / "albert")
    file = checkpoint.path / "model.safetensors"
    prefix = "albert.encoder.albert_layer_groups."
    tensors = {name: tensor.clone() for name, tensor in load_file(file).items()}
    layer = [name for name in tensors if name.startswith(f"{prefix}0.")]
    for name in layer:  # as a tool saves them that knows no sharing
        tensors[name.replace(f"{prefix}0", f"{prefix}1")] = tensors[name].clone()
    save_file(tensors, file, metadata={"format": "pt"})
    load_folder(checkpoint.path, "copies", allow_pickle=False, work=tmp_path / "work")
    tensors[layer[0].replace(f"{prefix}0", f"{prefix}1")] += 1
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"albert_layer_groups\.1\..* differs from the layer"):
        load_folder(checkpoint.path, "copies", allow_pickle=False, work=tmp_path / "work")


def test_sharded_weights_become_one_file(bert: Checkpoint, work: Path) -> None:
    expected = logits(bert)
    model = load_model(bert)
    (bert.path / "model.safetensors").unlink()
    model.save_pretrained(bert.path, max_shard_size="40KB")
    shards = sorted(bert.path.glob("model-*.safetensors"))
    assert len(shards) > 1
    loaded = resolve_model(str(bert.path), work=work)
    assert loaded.path == work / "checkpoint"
    assert torch.equal(logits(loaded), expected)
    shards[0].unlink()
    with pytest.raises(InputError, match=f"missing: {shards[0].name}"):
        resolve_model(str(bert.path), work=work)


def to_pickle(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def test_pickle_needs_the_flag(bert: Checkpoint, work: Path) -> None:
    expected = logits(bert)
    to_pickle(bert.path)
    with pytest.raises(InputError, match="--allow-pickle") as error:
        resolve_model(str(bert.path), work=work)
    assert len(str(error.value).splitlines()) == 1
    loaded = resolve_model(str(bert.path), allow_pickle=True, work=work)
    assert torch.equal(logits(loaded), expected)
    assert loaded.path != bert.path


class MakesFolder:
    """A pickle of this makes a folder where it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.folder),)


def test_a_hostile_pickle_is_not_run(bert: Checkpoint, work: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    hostile = pickle.dumps({"x": MakesFolder(trap)})
    pickle.loads(hostile)  # it does work
    trap.rmdir()
    (bert.path / "pytorch_model.bin").write_bytes(hostile)
    assert resolve_model(str(bert.path), allow_pickle=True, work=work).path == bert.path
    (bert.path / "model.safetensors").unlink()
    with pytest.raises(InputError, match="nothing of it was run"):
        resolve_model(str(bert.path), allow_pickle=True, work=work)
    assert not trap.exists()


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("fault", ["missing", "empty", "half", "noise"])
def test_a_damaged_file_is_named(bert: Checkpoint, work: Path, file: str, fault: str) -> None:
    path = bert.path / file
    content = path.read_bytes()
    path.unlink()
    if fault != "missing":
        damaged = {"empty": b"", "half": content[: len(content) // 2], "noise": b"\xff\x00" * 500}
        path.write_bytes(damaged[fault])
    with pytest.raises(InputError, match=file) as error:
        resolve_model(str(bert.path), work=work)
    assert len(str(error.value).splitlines()) <= 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "gpt2"}, "no family for model_type 'gpt2'"),
        ({"model_type": None}, "no model_type"),
        ({"hidden_size": "wide"}, "not a valid configuration"),
        ({"vocab_size": 100}, "the tokenizer has the id 159"),
        ({"id2label": {"0": "a", "1": "b", "3": "c"}}, r"ids \[0, 1, 3\], not 0\.\.2"),
    ],
)
def test_a_wrong_configuration_is_refused(
    bert: Checkpoint, work: Path, fields: dict[str, Any], message: str
) -> None:
    edit_config(bert.path, **fields)
    with pytest.raises(InputError, match=message):
        resolve_model(str(bert.path), work=work)


def test_labels_are_in_the_order_of_their_ids(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "b", labels=11)
    names = [f"name {index}" for index in range(11)]
    order = [10, 2, 0, 1, *range(3, 10)]
    edit_config(checkpoint.path, id2label={str(index): names[index] for index in order})
    assert Checkpoint(checkpoint.path, "b").labels == tuple(names)


def test_one_output_is_a_regression(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "b", labels=1)
    assert checkpoint.task == "regression"
    assert logits(checkpoint).shape == (1, 1)


def test_random_weights_are_seeded_and_marked(tmp_path: Path) -> None:
    entry = CatalogueEntry(
        name="x",
        hub_id="a/x",
        model_type="roberta",
        config={
            "vocab_size": 3000,
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "type_vocab_size": 1,
        },
        parameters=1,
        good_for="tests",
    )
    first, again, other = (
        write_random(entry, ("a", "b"), seed, tmp_path / name)
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    )
    assert has_random_weights(first)
    assert first.sha256 == again.sha256 != other.sha256
    assert first.tokenizer.get_vocab_size() == 3000
    assert first.tokenizer.token_to_id("[PAD]") == first.config.pad_token_id == 1
    ids = first.tokenizer.encode("what is the weather in zurich?").ids
    assert first.tokenizer.token_to_id("[UNK]") not in ids
    assert count_parameters(first) == sum(p.numel() for p in load_model(first).parameters())


@pytest.mark.parametrize("name", ["bert-base-uncase", "./nowhere", "/no/such/folder"])
def test_an_unknown_name_is_refused(name: str, work: Path) -> None:
    with pytest.raises(InputError, match="unknown model"):
        resolve_model(name, work=work)


HUB = """
import sys
from pathlib import Path
from edgebert.pipeline.stages.load import resolve_model
from edgebert.targets.errors import EdgebertError
try:
    print(resolve_model(sys.argv[1], work=Path(sys.argv[2])).path)
except EdgebertError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def test_the_hub_cache_is_used_offline_and_its_lack_is_told(
    bert: Checkpoint, tmp_path: Path
) -> None:
    def run(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", HUB, name, str(tmp_path / "work")]
        environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "PATH": ""}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    lacking = run("bert-base-uncased")
    assert lacking.returncode == MachineError.exit_code
    assert "hf download google-bert/bert-base-uncased" in lacking.stdout

    cache = tmp_path / "hub" / "hub" / "models--someone--tiny"
    snapshot = cache / "snapshots" / ("0" * 40)
    shutil.copytree(bert.path, snapshot)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("0" * 40)
    cached = run("someone/tiny")
    assert (cached.returncode, cached.stdout.strip()) == (0, str(snapshot))
