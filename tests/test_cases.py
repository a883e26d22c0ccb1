"""Faults that users of other tools met: each has a test, and those that had none are here."""

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from edgebert.calibration import Dataset, Row
from edgebert.pipeline.artifact import Checkpoint
from edgebert.pipeline.runtimes.run import encode, open_session
from edgebert.pipeline.stages.bundle import BundleInputs
from edgebert.pipeline.stages.load import load_model
from edgebert.pipeline.stages.reference import Reference, encode_rows, run_torch
from edgebert.pipeline.stages.validate import Validate

HERE = Path(__file__).parent
TinyCheckpoint = Callable[..., Checkpoint]

# What went wrong elsewhere, and the tests that hold the right value: file -> its tests.
CASES: dict[str, dict[str, tuple[str, ...]]] = {
    "ALBERT grows several-fold on export, its shared layer stored once a depth": {
        "export_onnx": (
            "test_a_small_albert_does_not_grow",
            "test_the_shared_layer_of_albert_is_stored_once",
        ),
        "export_litert": ("test_albert_layer_is_stored_once",),
        "quantize_onnx": ("test_albert_layer_is_stored_once",),
    },
    "a tied embedding is stored twice, or a language model's head comes along": {
        "unused_weights": ("test_a_tied_language_model_head",)
    },
    "a student that shares tensors cannot be saved": {
        "distill": ("test_a_layer_used_at_two_depths_survives_training_and_saving",)
    },
    "a graph is right at the length of its trace only (DeBERTa, DistilBERT)": {
        "families": ("test_parity_with_pytorch",),
        "families_tflite": ("test_parity",),
    },
    "a misspelt name freezes the shape of one input": {
        "export_onnx": ("test_inputs_of_different_shapes_are_refused",)
    },
    "a file has a newer IR version or opset than the device's runtime": {
        "export_onnx": (
            "test_opset_and_ir_version_stay_within_the_target",
            "test_what_a_target_cannot_take_is_refused",
        ),
        "run_py": ("test_a_runtime_older_than_the_manifest_names",),
    },
    "the graph wants token types and the tokenizer makes none": {
        "cases": ("test_token_types_that_nobody_made_are_zeros",)
    },
    "mask and token types are swapped": {"faults": ("test_a_fault_is_caught",)},
    "the second text of a pair has type 1 in a model that knows one type": {
        "cases": ("test_a_pair_for_a_model_with_one_token_type",)
    },
    "514 positions are taken for 514 tokens": {
        "load": ("test_roberta_takes_512_tokens_of_514_positions",),
        "run_py": ("test_truncation_keeps_the_separators",),
        "validate": ("test_truncated_rows_are_counted_and_told",),
    },
    "int64 is fed where int32 is wanted": {
        "run_py": ("test_dtype_is_the_files_own",),
        "export_litert": ("test_int64_is_refused",),
    },
    "the constant of the mask ruins calibrated scales": {
        "onnx_file": ("test_check_refuses_scales_of_a_mask_constant",),
        "quantize_litert": ("test_an_infinite_scale_is_refused",),
        "quantize_onnx": ("test_int8_scheme",),
    },
    "the constant of the mask is infinite in fp16": {
        "quantize_onnx": (
            "test_fp16_is_finite_on_an_all_padding_row",
            "test_fp16_constants_are_finite_in_half_precision",
        )
    },
    "int8 saturates on x86 without VNNI": {
        "quantize_onnx": ("test_reduced_range_cannot_saturate_16_bits",),
        "targets": ("test_no_dynamic_int8_where_it_is_silently_wrong",),
        "report": ("test_host_instructions",),
    },
    "a method of calibration collapses and ships": {
        "build": ("test_a_gate_fires",),
        "validate": ("test_damaged_weights_fail_the_drift_gate",),
    },
    "an empty calibration file fails late and obscurely": {
        "refusals": ("test_wrong_data",),
        "sample": ("test_too_few_rows_are_refused",),
        "quantize_onnx": ("test_no_calibration_rows_is_an_input_error",),
    },
    "the int8 file is as large as the fp32 file": {
        "onnx_file": ("test_check_names_what_is_left_in_floating_point",),
        "quantize_onnx": ("test_int8_scheme",),
        "quantize_litert": ("test_a_matrix_left_in_fp32_is_refused",),
    },
    "dynamic int8 scores a text by its padding": {
        "quantize_onnx": ("test_static_is_independent_of_padding",),
        "validate": ("test_a_tflite_file_is_measured_with_its_own_padding_and_length",),
    },
    "scales a channel are said to be better and are not": {
        "candidates": ("test_all_candidates_can_be_compared_and_the_first_that_passes_is_kept",)
    },
    "int8 is slower than fp32": {
        "report": ("test_speed_notes",),
        "measure": ("test_measure_against_fp32",),
    },
    "an operator is newer than the runtime of a small board": {
        "export_litert": ("test_old_runtime_is_refused_by_operator",),
        "quantize_litert": ("test_old_runtimes_are_refused",),
    },
    "a conversion needs operators that are not builtin": {
        "export_litert": ("test_foreign_operators_are_refused",),
        "families_tflite": ("test_file",),
    },
    "a runtime was built for another NumPy": {
        "bundle": ("test_requirements_go_together",),
        "run_py": ("test_missing_package_is_said_by_name",),
    },
    "white space, accents, emoji or punctuation are read in another way on the device": {
        "golden": ("test_golden_holds_nasty_texts", "test_check_catches")
    },
    "a literal [SEP] in a text": {"cases": ("test_texts_that_spell_out_special_tokens_are_told",)},
    "SentencePiece ids are one less than the model's": {
        "load": ("test_sentencepiece_becomes_the_xlm_roberta_tokenizer",)
    },
    "a cased model is lower-cased silently": {
        "load": ("test_lost_upper_case_is_warned_of", "test_a_stated_case_is_kept")
    },
    "the tokenizer is chosen by the name of the folder": {
        "load": ("test_the_family_comes_from_the_configuration",)
    },
    "an odd line of the vocabulary shifts every later id": {
        "load": ("test_an_odd_line_of_a_vocabulary_shifts_no_id",)
    },
    "model and data number the same labels differently": {
        "metrics": ("test_labels_match_by_name_and_not_by_position",),
        "data": ("test_labels_match_by_name_whatever_their_case_and_the_order_of_rows",),
    },
    "labels are in the order of a file and not of their ids": {
        "load": ("test_labels_are_in_the_order_of_their_ids",)
    },
    "one output is put through softmax or sigmoid": {
        "load": ("test_one_output_is_a_regression",),
        "metrics": ("test_one_output_is_a_regression_of_raw_values",),
        "run_py": ("test_interpretation_of_each_head",),
    },
    "a limit is finer than the rows can show": {
        "gates": ("test_the_gate_says_which_of_three_it_is",),
        "metrics": ("test_half_widths_and_single_rows_at_three_sizes",),
    },
    "a folder without a trained head gets a random one": {
        "load": ("test_a_missing_head_is_refused_by_name",)
    },
    "a pruned model does not reload": {"prune": ("test_12_heads_to_8_reload_in_a_plain_process",)},
    "half an artifact of a killed run is used again": {
        "interrupted": ("test_killed_at_any_moment",),
        "cache": ("test_a_harmed_result_is_made_again",),
    },
    "external data is left behind or cut": {
        "bundle": ("test_external_data_is_copied_and_checked",),
        "faults": ("test_a_fault_is_caught",),
    },
    "weights in a pickle run code": {
        "load": ("test_a_hostile_pickle_is_not_run", "test_pickle_needs_the_flag")
    },
    "paths that are not ASCII": {"places": ("test_paths_in_any_script",)},
    "a GPU is asked for and the CPU answers": {
        "run_py": ("test_provider_must_be_the_one_asked_for",)
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_case_has_its_tests(case: str) -> None:
    for name, tests in CASES[case].items():
        tree = ast.parse((HERE / f"test_{name}.py").read_text(encoding="utf-8"))
        found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(tests) <= found, name


def test_token_types_that_nobody_made_are_zeros(tiny_bundle_inputs: BundleInputs) -> None:
    checkpoint = tiny_bundle_inputs.checkpoint
    ids = checkpoint.tokenizer.encode("what is the weather").ids
    with torch.no_grad():
        expected = load_model(checkpoint)(input_ids=torch.tensor([ids])).logits[0].numpy()
    for model in tiny_bundle_inputs.models:
        logits = open_session(model.file).logits(ids, [])
        np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


def test_a_pair_for_a_model_with_one_token_type(
    tiny_checkpoint: TinyCheckpoint, tmp_path: Path
) -> None:
    checkpoint = tiny_checkpoint("roberta", tmp_path / "roberta")
    pair = encode(checkpoint.tokenizer, "good film", "not bad", 32)
    assert 1 in pair.type_ids  # as this tokenizer has it
    ids = torch.tensor([pair.ids])
    model = load_model(checkpoint)
    with torch.no_grad():
        expected = model(input_ids=ids, token_type_ids=torch.zeros_like(ids)).logits[0].numpy()
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=ids, token_type_ids=torch.tensor([pair.type_ids]))
    (logits,) = run_torch(checkpoint, [pair])
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-6)


def test_texts_that_spell_out_special_tokens_are_told(
    tiny_bundle_inputs: BundleInputs, tmp_path: Path
) -> None:
    checkpoint = tiny_bundle_inputs.checkpoint
    rows = tuple(Row(text, "bad") for text in ("bad [SEP] good", "bad[SEP]good", "good film"))
    separator = checkpoint.tokenizer.token_to_id("[SEP]")
    assert separator is not None
    encoded = encode_rows(checkpoint.tokenizer, rows, 32)
    assert [row.ids.count(separator) for row in encoded] == [2, 2, 1]
    data = Dataset("mine", (), (), rows, "")
    reference = Reference("test")(checkpoint, data, tmp_path)
    report = Validate()(checkpoint, tiny_bundle_inputs.models[0], data, reference)
    assert "2 rows spell out a special token, which is read as one" in report.notes
