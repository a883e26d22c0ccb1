"""Reading data: formats, splits, labels, and what is refused how."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from edgebert.calibration import Dataset, Row, load_dataset, shipped_dataset, shipped_names
from edgebert.calibration.labels import IGNORED, match_labels
from edgebert.targets.errors import InputError

ROWS = [
    ("good film", "positive"),
    ('he said "no",\nthen left', "negative"),
    ("naïve 東京", "positive"),
]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def as_jsonl(rows: Sequence[tuple[str, object]]) -> str:
    return "".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in rows)


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_dataset(path)
    message = str(caught.value)
    assert len(message.splitlines()) <= 3
    return message


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    table = "text,label\r\n" + "".join(
        f'"{t.replace(chr(34), chr(34) * 2)}",{y}\r\n' for t, y in ROWS
    )
    columns = {"text": [t for t, _ in ROWS], "label": [y for _, y in ROWS]}
    write(tmp_path / "train.csv", "\ufeff" + table)
    write(tmp_path / "dev.jsonl", as_jsonl(ROWS) + "\n\n")
    parquet.write_table(pyarrow.table(columns), tmp_path / "test.parquet")
    data = load_dataset(tmp_path)
    assert data.train == data.dev == data.test
    assert [(row.text, row.label) for row in data.train] == ROWS
    write(tmp_path / "train.csv", "")
    (tmp_path / "train.csv").unlink()
    write(tmp_path / "train.tsv", "text\tlabel\n" + "".join(f"{t}\t{y}\n" for t, y in ROWS[::2]))
    assert [(row.text, row.label) for row in load_dataset(tmp_path).train] == ROWS[::2]


def test_a_line_break_inside_quotes_does_not_shift_the_lines_named_in_errors(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "a.csv", 'text,label\n"one\ntwo",x\nthree,\n')
    assert "no label" in refused(file) and "line 4" in refused(file)


def test_unicode_line_separators_end_no_json_line(tmp_path: Path) -> None:
    line = '{"text": "one\u2028two\x85three", "label": "x"}\n'
    data = load_dataset(write(tmp_path / "train.jsonl", line))
    assert [*data.train, *data.dev, *data.test] == [Row("one\u2028two\x85three", "x")]


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("a.csv", "text,label\n", ["a.csv", "0 usable rows"]),
        ("a.csv", "\n  \n\n", ["a.csv", "0 usable rows"]),
        ("a.jsonl", "\n  \n\n", ["a.jsonl", "0 usable rows"]),
        ("a.jsonl", "", ["a.jsonl", "0 usable rows"]),
        ("a.csv", 'text,label\n"  ",x\n', ["a.csv", "0 usable rows"]),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": ', ["line 2", "not JSON"]),
        ("a.jsonl", '["a", "x"]\n', ["line 1", "not a JSON object"]),
        ("a.csv", "sentence,label\na,x\n", ["no column 'text'", "sentence, label"]),
        ("a.jsonl", '{"text": 3, "label": "x"}\n', ["line 1", "text is 3, not a string"]),
        ("a.jsonl", '{"text": "\\ud800", "label": "x"}\n', ["surrogate"]),
        ("a.jsonl", '{"text": "a", "label": null}\n', ["line 1", "no label"]),
        ("a.csv", "text\na\n", ["no column 'label'", "found: text"]),
        ("a.jsonl", '{"text": "a", "label": true}\n', ["line 1", "label True"]),
        ("a.jsonl", as_jsonl([("a", "x"), ("b", 3)]), ["line 2", "label 3 is an id", "a name"]),
        ("a.jsonl", as_jsonl([("a", 1.5), ("b", float("nan"))]), ["line 2", "label is nan"]),
        ("a.csv", "text,label\na,1.5\nb,inf\n", ["line 3", "label is inf"]),
        ("a.csv", b"text,label\nok,x\nna\xefve,x\n", ["line 3", "0xef at offset 18", "UTF-8"]),
        ("a.csv", "text;label\na;x\n", ["semicolons", ".csv with commas"]),
        ("a.csv", "text,label\na,b,x\n", ["line 2", "3 fields where the header has 2"]),
        ("a.csv", 'text,label\n"a,x\n', ["line 2", "malformed"]),
        ("a.csv", "text,text\na,x\n", ["two columns are named 'text'"]),
        ("a.xlsx", "text", ["'.xlsx' is no data format", ".jsonl"]),
        ("a.parquet", "text,label\n", ["not a Parquet file"]),
        ("a.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}\n', ["2 tokens but 1 tags"]),
    ],
)
def test_malformed_files_are_refused(
    tmp_path: Path, name: str, content: str | bytes, parts: list[str]
) -> None:
    message = refused(write(tmp_path / name, content))
    assert all(part in message for part in [name, *parts])


def test_missing_files_and_folders_without_splits_are_refused(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "nowhere.csv")
    write(tmp_path / "reviews.csv", "text,label\na,x\n")
    assert "found: reviews.csv" in refused(tmp_path)
    write(tmp_path / "train.csv", "text,label\na,x\n")
    write(tmp_path / "train.jsonl", as_jsonl(ROWS))
    assert "two files for 'train'" in refused(tmp_path)


def test_a_single_file_is_split_by_its_texts_whatever_their_order(tmp_path: Path) -> None:
    rows: list[tuple[str, object]] = [(f"text number {i}", "xy"[i % 2]) for i in range(2000)]
    first = load_dataset(write(tmp_path / "a.jsonl", as_jsonl(rows)))
    assert 1500 < len(first.train) < 1700
    assert 150 < len(first.dev) < 250 and 150 < len(first.test) < 250
    assert "split by the hash of its text" in first.notes[0]
    random.Random(0).shuffle(rows)
    second = load_dataset(write(tmp_path / "a.jsonl", as_jsonl(rows)))
    for split in ("train", "dev", "test"):
        assert set(first.split(split)) == set(second.split(split))
    assert first.sha256 != second.sha256


def test_a_folder_without_dev_has_it_held_out_of_train_and_keeps_its_test(tmp_path: Path) -> None:
    rows: list[tuple[str, object]] = [(f"text number {i}", "x") for i in range(500)]
    write(tmp_path / "train.jsonl", as_jsonl(rows))
    write(tmp_path / "test.jsonl", as_jsonl([("unseen", "x")]))
    data = load_dataset(tmp_path)
    assert len(data.train) + len(data.dev) == 500 and 20 < len(data.dev) < 80
    assert data.test == (Row("unseen", "x"),)
    assert "held out" in data.notes[0]


def test_aliases_pairs_and_languages(tmp_path: Path) -> None:
    row = '{"text": "a", "text2": "b", "label": "x", "lang": "de"}\n'
    for name in ("train", "validation", "test"):
        write(tmp_path / f"{name}.jsonl", row)
    data = load_dataset(tmp_path)
    assert data.dev == (Row("a", "x", text_pair="b", language="de"),)
    assert "overlap: 1 of 1 test rows also stand in train" in data.notes


def test_kinds_of_labels(tmp_path: Path) -> None:
    def labels(content: str, name: str = "train.csv") -> list[object]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        write(folder / name, content)
        write(folder / name.replace("train", "dev"), content)
        return [row.label for row in load_dataset(folder).train]

    assert labels("text,label\na,0\nb,2\n") == [0, 2]
    assert labels("text,label\na,0\nb,2.5\n") == [0.0, 2.5]
    assert labels("text,label\na,007\nb,2\n") == ["007", "2"]
    assert labels('text,label\na,"[""x"", ""y""]"\nb,[]\n') == [("x", "y"), ()]
    assert labels('text,label\na,x\n"b, c",y\n') == ["x", "y"]
    assert labels("tokens,tags\nNew York,B-LOC I-LOC\n") == [("B-LOC", "I-LOC")]
    assert labels(as_jsonl([("a", 1), ("b", 2.5)]), "train.jsonl") == [1.0, 2.5]


def test_parquet_ids_of_class_labels_become_names(tmp_path: Path) -> None:
    feature = {"names": ["no", "yes"], "_type": "ClassLabel"}
    info = json.dumps({"info": {"features": {"label": feature}}})
    table = pyarrow.table({"text": ["a", "b"], "label": [1, 0]})
    for split in ("train", "test"):
        file = tmp_path / f"{split}-00000-of-00001.parquet"
        parquet.write_table(table.replace_schema_metadata({"huggingface": info}), file)
    assert [row.label for row in load_dataset(tmp_path).test] == ["yes", "no"]


def test_shipped_data_have_their_rows_and_licenses() -> None:
    sizes = {}
    for name in shipped_names():
        data = shipped_dataset(name)
        sizes[name] = (len(data.train), len(data.dev), len(data.test), data.license)
        assert data.attribution
    assert sizes == {
        "banking77": (9038, 965, 3080, "CC-BY-4.0"),
        "clinc150": (15100, 3100, 5500, "CC-BY-3.0"),
        "csl_category": (8000, 1000, 1000, "Apache-2.0"),
        "sib200_zh": (701, 99, 204, "CC-BY-SA-4.0"),
        "snips": (13129, 655, 700, "CC0-1.0"),
    }
    with pytest.raises(InputError, match="nearest: clinc150"):
        shipped_dataset("clinc")


NLI = ("contradiction", "entailment", "neutral")


def test_labels_match_by_name_whatever_their_case_and_the_order_of_rows() -> None:
    rows = [Row("a", "Neutral"), Row("b", "ENTAILMENT"), Row("c", "contradiction")]
    assert match_labels(rows, NLI, "single_label").values.tolist() == [2, 1, 0]
    assert match_labels(rows[::-1], NLI, "single_label").values.tolist() == [0, 1, 2]


@given(st.permutations(NLI), st.lists(st.sampled_from(NLI), min_size=1))
def test_a_matched_id_names_the_label_whatever_the_model_s_order(
    model: list[str], given_labels: list[str]
) -> None:
    ids = match_labels([Row("t", y) for y in given_labels], model, "single_label").values
    assert [model[i] for i in ids] == given_labels


def test_an_unknown_label_is_refused_with_its_row_and_the_nearest_names() -> None:
    rows = [Row("a", "neutral"), Row("b", "entailmnt", where="test.csv, line 3")]
    with pytest.raises(InputError) as caught:
        match_labels(rows, NLI, "single_label")
    assert "unknown label 'entailmnt'" in str(caught.value)
    assert "test.csv, line 3" in str(caught.value) and "entailment" in caught.value.cure


def test_names_against_generic_labels_are_refused_and_ids_are_taken() -> None:
    generic = ("LABEL_0", "LABEL_1")
    with pytest.raises(InputError, match="id2label"):
        match_labels([Row("a", "positive")], generic, "single_label")
    assert match_labels([Row("a", "LABEL_1")], generic, "single_label").values.tolist() == [1]
    targets = match_labels([Row("a", 1), Row("b", 0)], generic, "single_label")
    assert targets.values.tolist() == [1, 0] and "by id" in targets.notes[0]
    with pytest.raises(InputError, match=r"0\.\.1"):
        match_labels([Row("a", 2)], generic, "single_label")


def test_numbers_that_are_names_of_the_model_match_as_names() -> None:
    rows = [Row("a", 1), Row("b", 5)]
    assert match_labels(rows, ("1", "2", "3", "4", "5"), "single_label").values.tolist() == [0, 4]
    with pytest.raises(InputError, match="unknown label '0'"):
        match_labels([Row("a", 0)], ("1", "2"), "single_label")


def test_targets_of_the_other_tasks() -> None:
    several = match_labels([Row("a", ("Y", "x")), Row("b", ())], ("x", "y"), "multi_label").values
    assert several.tolist() == [[True, True], [False, False]]
    assert match_labels([Row("a", 2), Row("b", 0.5)], ("score",), "regression").values.tolist() == [
        2,
        0.5,
    ]
    row = Row("New York", ("B-LOC", "-100"), tokens=("New", "York"))
    assert match_labels([row], ("O", "B-LOC"), "token").values.tolist() == [1, IGNORED]
    for task in ("single_label", "regression", "multi_label"):
        with pytest.raises(InputError, match="does not fit"):
            match_labels([row], ("O", "B-LOC"), task)


def test_datasets_are_told_apart_by_split_name() -> None:
    data = Dataset("d", (Row("a"),), (Row("b"),), (Row("c"),), "")
    assert [data.split(s)[0].text for s in ("train", "dev", "test")] == ["a", "b", "c"]
