"""Writes what the Java tokenizers are tested against: tokenizers, texts, and the right values.

    python android_demo/ci/tokenizer_values.py android_demo/core/target/tokenizer-values

makes a folder with `texts.jsonl` and, for every tokenizer, `NAME.json` (its tokenizer.json) and
`NAME.txt.gz`: a line for each text with "id start end type" of every token, as Hugging Face's
`tokenizers` gives them. `--tokenizer FILE` takes other tokenizers instead, `--texts FILE` other
texts (one a line).
"""

import argparse
import gzip
import json
import sys
from dataclasses import asdict
from pathlib import Path

import tokenizers
import unicode_data
from tokenizer_makers import tokenizers_by_name
from tokenizer_texts import Row, data_sets, rows
from tokenizers import Tokenizer


def value(tokenizer: Tokenizer, row: Row, strategy: str, direction: str) -> str:
    """The tokens of one row, or "error" where the row cannot be cut to its limit."""
    if row.limit:
        tokenizer.enable_truncation(row.limit, strategy=strategy, direction=direction)
    else:
        tokenizer.no_truncation()
    try:
        found = tokenizer.encode(row.text, row.pair)
    except Exception:  # tokenizers raises plain Exception
        return "error"
    tokens = zip(found.ids, found.offsets, found.type_ids, strict=True)
    return " ".join(f"{i} {start} {end} {kind}" for i, (start, end), kind in tokens)


def write(folder: Path, name: str, tokenizer: Tokenizer, texts: list[Row]) -> None:
    """Writes a tokenizer and its values."""
    state = json.loads(tokenizer.to_str())
    if name == "roberta":  # the older form of merges
        state["model"]["merges"] = [" ".join(pair) for pair in state["model"]["merges"]]
    text = json.dumps(state, ensure_ascii=name != "xlm-roberta-large")
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    cut = tokenizer.truncation or {}
    strategy, direction = cut.get("strategy", "longest_first"), cut.get("direction", "right")
    tokenizer.no_padding()
    lines = [value(tokenizer, row, strategy, direction) for row in texts]
    packed = gzip.compress("\n".join(lines).encode(), 1, mtime=0)
    (folder / f"{name}.txt.gz").write_bytes(packed)


def check_tables() -> None:
    """The tables of Unicode must be those of the package that gives the values."""
    if f"from tokenizers {tokenizers.__version__}." not in unicode_data.TARGET.read_text("utf-8"):
        sys.exit(f"{unicode_data.TARGET.name} is of another tokenizers: run unicode_data.py")


def main(arguments: list[str]) -> None:
    """Writes the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, action="append")
    parser.add_argument("--texts", type=Path)
    chosen = parser.parse_args(arguments)
    check_tables()
    folder: Path = chosen.folder
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    texts = rows()
    if chosen.texts:
        texts = [Row(line) for line in chosen.texts.read_text("utf-8").split("\n")]
    found = tokenizers_by_name(data_sets()) if not chosen.tokenizer else {}
    for file in chosen.tokenizer or []:
        found[file.stem] = Tokenizer.from_file(str(file))
    with (folder / "texts.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(asdict(row)) + "\n" for row in texts)
    for name, tokenizer in found.items():
        write(folder, name, tokenizer, texts)
    words = f"{len(texts)} texts, {len(found)} tokenizers, tokenizers {tokenizers.__version__}"
    sys.stdout.write(words + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
