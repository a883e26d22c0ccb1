"""Pruning: shapes that shrink and reload, what mathematics says must not change, refusals."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from edgebert.calibration.dataset import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint, Model, TokenRow, dotted
from edgebert.pipeline.families import all_families, find_family
from edgebert.pipeline.recipe import PruneSettings, load_recipe
from edgebert.pipeline.runtimes.run import open_session
from edgebert.pipeline.schemes import find_scheme
from edgebert.pipeline.stages.batches import Collator
from edgebert.pipeline.stages.conformance import sample_inputs
from edgebert.pipeline.stages.export_litert import ExportLitert
from edgebert.pipeline.stages.export_onnx import ExportOnnx
from edgebert.pipeline.stages.factorize import factorize_embedding
from edgebert.pipeline.stages.importance import magnitude_importance, taylor_importance
from edgebert.pipeline.stages.load import count_parameters, load_folder, load_model
from edgebert.pipeline.stages.prune import Prune
from edgebert.pipeline.stages.quantize_litert import QuantizeLitert
from edgebert.pipeline.stages.quantize_onnx import QuantizeOnnx
from edgebert.pipeline.stages.surgery import Surgery, best, resolve_count
from edgebert.targets.errors import InputError

TinyCheckpoint = Callable[..., Checkpoint]
Reference = Callable[[Checkpoint, dict[str, torch.Tensor]], np.ndarray]
EXACT = 1e-6  # the same numbers in another order of summation
PRUNES_HEADS = [name for name, family in all_families().items() if family.heads]
FACTORIZES = [name for name, family in all_families().items() if family.embedding_projection]
WORDS = ("what is the weather", "book a flight", "play music", "my bank account", "good film")


def head_field(model_type: str) -> str:
    """What the configuration calls its number of heads."""
    names = ("num_attention_heads", "n_heads", "n_head")
    return next(name for name in names if name in find_family(model_type).tiny_config)


@pytest.fixture(scope="session")
def data() -> Dataset:
    rows = tuple(Row(f"{text} {i}", f"label_{i % 3}") for i, text in enumerate(WORDS * 4))
    return Dataset("words", rows, (), (), "0")


def prune(checkpoint: Checkpoint, out: Path, data: Dataset | None = None, **wanted: Any) -> Any:
    return Prune(PruneSettings(rows=8, **wanted))(checkpoint, data, out)


def zero(checkpoint: Checkpoint, units: str, parts: list[int]) -> Checkpoint:
    """Set all weights of these heads or neurons, of every layer, to zero."""
    surgery = Surgery(checkpoint)
    file = checkpoint.path / "model.safetensors"
    tensors = load_file(file)
    for unit in getattr(surgery, units):
        for slicing in unit.slicings:
            views = tensors[slicing.name].movedim(slicing.axis, 0)
            rows = torch.arange(len(views)).reshape(slicing.blocks, unit.count, -1)
            views[rows[:, parts].flatten()] = 0
    save_file(tensors, file, {"format": "pt"})
    return Checkpoint(checkpoint.path, checkpoint.name)


def worst(ours: np.ndarray, theirs: np.ndarray) -> float:
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max())


@pytest.mark.parametrize("model_type", PRUNES_HEADS)
@pytest.mark.parametrize("importance", ["taylor", "magnitude"])
def test_heads_of_zeros_are_found_and_change_nothing(
    model_type: str,
    importance: str,
    tiny_checkpoint: TinyCheckpoint,
    data: Dataset,
    reference: Reference,
    tmp_path: Path,
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "whole", **{head_field(model_type): 8})
    ratio = int(getattr(checkpoint.config, "head_ratio", 1))
    total = 8 // ratio
    checkpoint = zero(checkpoint, "heads", [0, 2])
    # 6 heads of 8: no number that divides the width of 32.
    pruned = prune(checkpoint, tmp_path / "out", data, heads=total - 2, importance=importance)
    inputs = sample_inputs(checkpoint, 3, 16)
    assert worst(reference(pruned, inputs), reference(checkpoint, inputs)) <= EXACT
    assert pruned.config.num_attention_heads == (total - 2) * ratio
    assert count_parameters(pruned) < count_parameters(checkpoint)


@pytest.mark.parametrize("model_type", list(all_families()))
def test_neurons_of_zeros_are_found_and_change_nothing(
    model_type: str,
    tiny_checkpoint: TinyCheckpoint,
    data: Dataset,
    reference: Reference,
    tmp_path: Path,
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "whole")
    checkpoint = zero(checkpoint, "neurons", list(range(5, 29)))
    # To Taylor a ReLU neuron that no text wakes is as good as zero.
    dead = getattr(checkpoint.config, "hidden_act", "") == "relu"
    importance = "magnitude" if dead else "taylor"
    pruned = prune(checkpoint, tmp_path / "out", data, ffn=40, importance=importance)
    inputs = sample_inputs(checkpoint, 3, 16)
    assert worst(reference(pruned, inputs), reference(checkpoint, inputs)) <= EXACT
    assert getattr(pruned.config, checkpoint.family.neurons_field) == 40
    assert not (pruned.path / "pruned_model.py").exists()


@pytest.mark.parametrize("model_type", list(all_families()))
def test_layers_are_dropped_whole(
    model_type: str, tiny_checkpoint: TinyCheckpoint, data: Dataset, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "whole")
    pruned = prune(checkpoint, tmp_path / "out", data, layers=1)
    model, left = load_model(checkpoint), load_model(pruned)
    assert pruned.config.num_hidden_layers == 1
    model.config.num_hidden_layers = 1
    listed: Any = dotted(model, checkpoint.family.layer_path)
    del listed[1:]
    inputs = sample_inputs(checkpoint, 3, 16)
    with torch.no_grad():
        assert torch.equal(left(**inputs).logits, model(**inputs).logits)


def test_the_layer_that_does_least_goes(
    tiny_checkpoint: TinyCheckpoint, data: Dataset, reference: Reference, tmp_path: Path
) -> None:
    """A ModernBERT layer that writes nothing into the residual stream."""
    checkpoint = tiny_checkpoint("modernbert", tmp_path / "whole")
    file = checkpoint.path / "model.safetensors"
    tensors = load_file(file)
    for name in ("model.layers.2.attn.Wo.weight", "model.layers.2.mlp.Wo.weight"):
        tensors[name] *= 0
    save_file(tensors, file, {"format": "pt"})
    pruned = prune(checkpoint, tmp_path / "out", data, layers=0.75)
    inputs = sample_inputs(checkpoint, 3, 16)
    assert worst(reference(pruned, inputs), reference(checkpoint, inputs)) <= EXACT
    kinds = checkpoint.config.layer_types
    assert pruned.config.layer_types == [*kinds[:2], kinds[3]]


def finite_differences(checkpoint: Checkpoint, rows: tuple[Row, ...], unit: int) -> list[float]:
    """What the loss of each text changes by where a head is scaled down a little, summed."""
    model = load_model(checkpoint).double()
    reader = Surgery(checkpoint).heads[unit].slicings[-1].name.removesuffix(".weight")
    module, step = dotted(model, reader), 1e-4
    names = checkpoint.labels
    collate = Collator.of(checkpoint)
    scale = torch.ones(4, dtype=torch.float64)
    module.register_forward_pre_hook(lambda _, inputs: (inputs[0] * scale.repeat_interleave(8),))
    totals = []
    for head in range(4):
        total = 0.0
        for row in rows:
            ids = checkpoint.tokenizer.encode(row.text)
            entry = {"input_ids": ids.ids, "token_type_ids": ids.type_ids}
            label = torch.tensor(names.index(str(row.label)))
            batch = collate([entry | {"labels": label}])
            losses = []
            for sign in (1, -1):
                scale[head] = 1 + sign * step
                with torch.no_grad():
                    losses.append(float(model(**batch).loss))
            scale[head] = 1
            total += abs(losses[0] - losses[1]) / (2 * step)
        totals.append(total)
    return totals


@pytest.mark.parametrize("model_type", ["bert", "albert"])
def test_taylor_is_the_derivative_of_the_loss(
    model_type: str, tiny_checkpoint: TinyCheckpoint, data: Dataset, tmp_path: Path
) -> None:
    """For ALBERT that of the head at every depth together."""
    checkpoint = tiny_checkpoint(model_type, tmp_path, num_attention_heads=4)
    rows = data.train[:6]
    scores = taylor_importance(Surgery(checkpoint), checkpoint, rows).heads[0]
    assert scores.tolist() == pytest.approx(finite_differences(checkpoint, rows, 0), rel=1e-3)


def test_magnitude_is_the_norm_of_what_belongs_to_a_neuron(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    surgery = Surgery(tiny_checkpoint("bert", tmp_path))
    layer = "bert.encoder.layer.1"
    inner, bias, outer = (
        surgery.tensors[f"{layer}.{name}"][index]
        for name, index in (
            ("intermediate.dense.weight", 7),
            ("intermediate.dense.bias", 7),
            ("output.dense.weight", (slice(None), 7)),
        )
    )
    norm = torch.cat([inner, bias[None], outer]).norm()
    assert float(magnitude_importance(surgery).neurons[1][7]) == pytest.approx(float(norm))


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12),
    st.integers(1, 12),
)
def test_best_keeps_the_highest_in_their_order(scores: list[float], count: int) -> None:
    count = min(count, len(scores))
    kept = best(torch.tensor(scores, dtype=torch.float64), count)
    assert kept == sorted(set(kept))
    assert len(kept) == count
    dropped = [score for index, score in enumerate(scores) if index not in kept]
    assert not dropped or min(scores[index] for index in kept) >= max(dropped)


RELOAD = """
import sys, numpy as np, torch
from transformers import AutoModelForSequenceClassification
try:
    AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
except (RuntimeError, ValueError) as error:
    print("refused", error)
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1], trust_remote_code=True)
model.save_pretrained(sys.argv[4])
with torch.no_grad():
    np.save(sys.argv[3], model.eval()(torch.from_numpy(np.load(sys.argv[2]))).logits.numpy())
assert not any(name.startswith("edgebert") for name in sys.modules)
"""


def test_12_heads_to_8_reload_in_a_plain_process(
    tiny_checkpoint: TinyCheckpoint, reference: Reference, tmp_path: Path
) -> None:
    real = {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 1}
    checkpoint = tiny_checkpoint("bert", tmp_path / "whole", **real)
    pruned = prune(checkpoint, tmp_path / "pruned", heads=8)
    tensors = load_file(pruned.path / "model.safetensors")
    for name in ("query", "key", "value"):
        weight = tensors[f"bert.encoder.layer.0.attention.self.{name}.weight"]
        assert weight.shape == (512, 768)
    config = json.loads((pruned.path / "config.json").read_text())
    assert (config["num_attention_heads"], config["attention_head_size"]) == (8, 64)
    ids = torch.randint(5, 150, (3, 12))
    np.save(tmp_path / "ids.npy", ids.numpy())
    files = [pruned.path, *(tmp_path / name for name in ("ids.npy", "logits.npy", "saved again"))]
    done = subprocess.run(
        [sys.executable, "-c", RELOAD, *map(str, files)],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules"), "HF_HUB_OFFLINE": "1"},
    )
    assert done.stdout.startswith("refused")  # never silently with made-up weights
    assert worst(np.load(files[2]), reference(pruned, {"input_ids": ids})) <= 1e-5
    for name in ("pruned_model.py", "model.safetensors"):
        assert (files[3] / name).read_bytes() == (pruned.path / name).read_bytes()


def test_a_token_classifier(tiny_checkpoint: TinyCheckpoint, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "whole", task="token")
    texts = [f"{text} {i}" for i, text in enumerate(WORDS * 2)]
    words = [tuple(text.split()) for text in texts]
    pairs = zip(texts, words, strict=True)
    rows = tuple(Row(text, ("label_0",) * len(split), tokens=split) for text, split in pairs)
    data = Dataset("words", rows, (), (), "0")
    pruned = prune(checkpoint, tmp_path / "out", data, heads=1, vocabulary=True)
    assert pruned.config.auto_map == {
        "AutoModelForTokenClassification": "pruned_model.PrunedClassifier"
    }
    ids = torch.tensor([pruned.tokenizer.encode("what is the weather").ids])
    assert load_model(pruned)(ids).logits.shape == (1, ids.shape[1], 3)


@given(st.integers(1, 64), st.integers(1, 64))
def test_a_share_is_what_it_says(kept: int, total: int) -> None:
    kept = min(kept, total - 1)
    for name in ("heads", "ffn", "layers"):
        assert kept < 1 or resolve_count(name, kept / total, total, "") == kept


def test_pruning_twice_is_pruning_once(
    tiny_checkpoint: TinyCheckpoint, reference: Reference, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("bert", tmp_path / "whole", num_attention_heads=8)
    once = prune(checkpoint, tmp_path / "once", heads=3)
    twice = prune(prune(checkpoint, tmp_path / "half", heads=6), tmp_path / "twice", heads=3)
    inputs = sample_inputs(checkpoint, 3, 16)
    assert worst(reference(twice, inputs), reference(once, inputs)) == 0
    assert twice.config.edgebert_pruned["heads"] == 8


@pytest.mark.parametrize("model_type", FACTORIZES)
def test_an_embedding_of_low_rank_is_factorized_exactly(
    model_type: str, tiny_checkpoint: TinyCheckpoint, reference: Reference, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "whole")
    family, file = checkpoint.family, checkpoint.path / "model.safetensors"
    tensors = load_file(file)
    folder = family.embedding_path.rpartition(".")[0]
    basis = torch.randn(6, tensors[f"{family.embedding_path}.weight"].shape[1])
    for name, table in tensors.items():
        if name.startswith(f"{folder}.") and name.endswith("embeddings.weight"):
            tensors[name] = torch.randn(len(table), 6) @ basis
    save_file(tensors, file, {"format": "pt"})
    pruned = prune(checkpoint, tmp_path / "out", embedding_size=8)
    assert load_model(pruned).get_input_embeddings().weight.shape == (160, 8)
    inputs = sample_inputs(checkpoint, 3, 16)
    assert worst(reference(pruned, inputs), reference(checkpoint, inputs)) <= 2e-5


@given(st.integers(2, 15))
@settings(max_examples=8, deadline=None)
def test_a_larger_embedding_is_nearer(size: int) -> None:
    """DeBERTa: the error is what the dropped singular values leave."""
    family = find_family("deberta-v2")
    table = torch.randn(40, 16, generator=torch.Generator().manual_seed(0))
    name = f"{family.embedding_path}.weight"
    new = factorize_embedding({name: table}, family, size)
    rebuilt = new[name] @ new[f"{family.embedding_projection}.weight"].T
    left = torch.linalg.svdvals(table)[size:]
    assert float((rebuilt - table).norm()) == pytest.approx(float(left.norm()), abs=1e-4)


@pytest.mark.parametrize("model_type", list(all_families()))
def test_texts_of_kept_tokens_give_the_same_logits(
    model_type: str,
    tiny_checkpoint: TinyCheckpoint,
    data: Dataset,
    reference: Reference,
    tmp_path: Path,
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "whole")
    pruned = prune(checkpoint, tmp_path / "out", data, vocabulary=True)
    assert pruned.config.vocab_size < checkpoint.config.vocab_size
    assert pruned.tokenizer.get_vocab_size() <= pruned.config.vocab_size
    # The spelled word is in no train text; the pad token is there for positions that count from it.
    for text in (*WORDS, "qzw music", "what?"):
        both = []
        for one in (checkpoint, pruned):
            pad = int(one.config.pad_token_id or 0)
            encoding = one.tokenizer.encode(text)
            count, ids = 3, encoding.ids
            padded = [pad] * count + ids if one.family.pads_left else ids + [pad] * count
            mask = [int(token != pad) for token in padded]
            inputs = {"input_ids": torch.tensor([padded]), "attention_mask": torch.tensor([mask])}
            both.append(reference(one, inputs))
        assert worst(*both) <= EXACT


@pytest.mark.parametrize("model_type", ["bert", "albert", "distilbert"])
def test_a_pruned_checkpoint_goes_all_the_way(
    model_type: str,
    tiny_checkpoint: TinyCheckpoint,
    data: Dataset,
    reference: Reference,
    tmp_path: Path,
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "whole", **{head_field(model_type): 4})
    pruned = prune(checkpoint, tmp_path / "out", data, heads=3, ffn=0.5, layers=1, vocabulary=True)
    assert load_folder(pruned.path, "p", allow_pickle=False, work=tmp_path) == replace(
        pruned, name="p"
    )
    encoding = pruned.tokenizer.encode("what is the weather")
    row = TokenRow(tuple(encoding.ids), tuple(encoding.type_ids))
    inputs = {"input_ids": torch.tensor([row.ids])}
    if pruned.has_token_type_ids:
        inputs["token_type_ids"] = torch.tensor([row.type_ids])
    expected = reference(pruned, inputs)[0]

    def distance(model: Model) -> float:
        logits = open_session(model.file).logits(list(row.ids), list(row.type_ids))
        return worst(np.asarray(logits), expected)

    exported = ExportOnnx()(pruned, tmp_path / "onnx")
    assert distance(exported) <= 1e-5
    onnx = find_scheme("dynamic_wi8c_afp32", "onnx")
    assert distance(QuantizeOnnx(onnx)(pruned, exported, (), tmp_path / "int8")) <= 0.2
    lite = ExportLitert((8,))(pruned, tmp_path / "tflite")
    assert distance(lite) <= 1e-5
    scheme = find_scheme("dynamic_wi8c_afp32", "tflite")
    assert distance(QuantizeLitert(scheme)(pruned, lite, (), tmp_path / "lite8")) <= 0.2


@pytest.mark.parametrize(
    ("model_type", "wanted", "message"),
    [
        ("bert", {"heads": 0.75}, "1.5 of 2 is not a whole number"),
        ("bert", {"layers": 0.25}, "0.5 of 2 is not a whole number"),
        ("bert", {"heads": 3}, "3 of 2: at least one"),
        ("bert", {"ffn": 0.001}, "at least one has to stay"),
        ("xlnet", {"heads": 1}, "the heads of this xlnet model cannot be pruned"),
        ("bert", {"embedding_size": 8}, "no place for a factorized embedding"),
        ("albert", {"embedding_size": 16}, "an embedding size of 16, where the model has 16"),
        ("bert", {"vocabulary": True}, "no train texts"),
    ],
)
def test_what_makes_no_sense_is_refused(
    model_type: str,
    wanted: dict[str, Any],
    message: str,
    tiny_checkpoint: TinyCheckpoint,
    tmp_path: Path,
) -> None:
    checkpoint = tiny_checkpoint(model_type, tmp_path / "whole")
    with pytest.raises(InputError, match=message) as error:
        prune(checkpoint, tmp_path / "out", **wanted)
    assert error.value.cure
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("setting", ["layers=0", "heads=0", "ffn=1.0", "heads=true", "neurons=3"])
def test_a_recipe_is_checked_before_anything_runs(setting: str) -> None:
    with pytest.raises(InputError, match="prune") as error:
        load_recipe("balanced", [f"prune.{setting}"])
    assert f"--set prune.{setting}" in error.value.where


def test_a_recipe_says_how_much_is_kept() -> None:
    recipe = load_recipe("balanced", ["prune.heads=8", "prune.ffn=0.5", "prune.vocabulary=true"])
    assert (recipe.prune.heads, recipe.prune.ffn, recipe.prune.layers) == (8, 0.5, None)
    assert recipe.prune.wanted
    assert not load_recipe("balanced").prune.wanted


def test_a_build_prunes_and_is_judged_by_the_whole_model(
    edgebert: Any, quick: tuple[str, ...]
) -> None:
    wanted = ("--set", "prune.ffn=0.5", "--set", "prune.vocabulary=true", "--set", "prune.heads=1")
    done = edgebert.build(*quick, *wanted, "--out", "pruned", "--max-drop", "0.9", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    stages = [stage["name"] for stage in report["manifest"]["stages"]]
    assert stages.index("prune") == stages.index("load") + 1
    drift = report["drift"]["onnx"]
    # The labels of the data are what the whole model answers.
    assert drift["metrics"][0]["reference"] == 1.0
    assert drift["agreement"] < 1.0
    whole = json.loads((edgebert.model / "config.json").read_text())
    assert report["manifest"]["parameters"] < count_parameters(Checkpoint(edgebert.model, "whole"))
    assert whole["num_attention_heads"] == 2
    again = edgebert("validate", "pruned", "--json")
    assert json.loads(again.stdout)["drift"]["onnx"]["metrics"] == drift["metrics"]


@pytest.mark.parametrize("setting", ["layers=0", "heads=0.25"])
def test_a_build_that_cannot_be_pruned_ends_with_2(
    setting: str, edgebert: Any, quick: tuple[str, ...]
) -> None:
    done = edgebert.build(*quick, "--set", f"prune.{setting}", "--out", "refused")
    assert done.returncode == 2
    assert f"prune.{setting.partition('=')[0]}" in done.stderr
    assert not (edgebert.folder / "refused").exists()
