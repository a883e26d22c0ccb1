"""The texts that the Java tokenizers are compared on: data sets, spelling variants, and fuzz."""

import gzip
import json
import random
import unicodedata
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEED = 20260101

SPECIALS = ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "<s>", "</s>", "<pad>", "<mask>", "<unk>"]
SPECIALS += ["[mask]", "##ing", "<0x41>", "\u2581", "<custom>", "Normalized"]

HAND_WRITTEN = [
    *(
        "",
        " ",
        "   ",
        "\n",
        "\t\r\n",
        "\u3000",
        "\u00a0",
        "\u200b",
        "\ufeff",
        "\x00",
        "\x7f",
        "\ufffd",
    ),
    *("note\nbook", "one\nline", "a\rb\tc", "a\r\nb", "\r\n\r\n", "\u201cends\u201d", "don\u2019t"),
    *("stop!!!", "\u20ac5 $5", "##ing", "snake_case", "hiyuga hiyouga", "caf\u00e9", "cafe\u0301"),
    *(
        "na\u0308chste",
        "\u017ce wysok\u0105 izb\u0119",
        "TITLE",
        "\u0130stanbul IZMIR",
        "\u0131I\u0130i",
    ),
    *("a" * 100, "a" * 101, "\u00e9" * 100, "\U0001f600" * 100, "\U0001f600" * 101, "x" * 5000),
    *(
        "good\U0001f44d",
        "\U0001f971 ok",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u2764\ufe0f",
    ),
    *(
        "bad [SEP] good",
        "bad[SEP]good",
        "[mask] [MASK]",
        "good film",
        "  good   film ",
        "good\u200bfilm",
    ),
    *("\uff21\uff22\uff23 \uff11\uff10\uff10\u339e", "wait\u2026", "\u6771\u4eac\u6771\u4eac"),
    *(
        "wochenendtagenwecker radiowecker",
        "Apple is Caf\u00e9",
        "it's we're I'll he'd I'm you've 'S 'LL",
    ),
    *(
        "   leading",
        "trailing   ",
        "a  b   c",
        "a \n b",
        "a\u00a0 b",
        "1234.5,6 \u00b2\u00bd\u2167",
    ),
    *(
        "\u2122\u0301",
        "\ufb01\u0301",
        "\u0600a",
        "\u0600\ufb01",
        "\u2764\u200d\u2122\u0301",
        "\u00a9\u200d\u00ae",
    ),
    *(
        "\uac00\u11a8",
        "\u1100\u1161\u11a8",
        "\u1112\u1161\u11ab\u1100\u1173\u11af",
        "\ud55c\uae00\u0301",
    ),
    *(
        "\u0915\u094d\u0937",
        "\u0958",
        "\u0929\u093c",
        "\u0e01\u0e33",
        "\U0001f1e9\U0001f1ea\U0001f1eb",
    ),
    *(
        "a\u0323\u0307",
        "a\u0307\u0323",
        "\u0344",
        "\u0f73\u0f71",
        "\u1e9b\u0323",
        "\u212b\u2126",
        "\u0345\u0301",
    ),
    *(
        "\u03a3\u03a3 \u1fb3",
        "\u01c5\u01c6",
        "\u1e9e\u00df",
        "\u10a0\u1c90",
        "\U00010400",
        "\U0001e900",
    ),
    *("\U0002b820\U0002b920\U0002cea1", "\U00020000\U0002a700", "\uf900\ufa6a", "\u9fff\u4dbf"),
    *(
        "  <mask>  x",
        "x<mask>",
        "a <custom> b",
        "a<custom>b",
        "normalized NORMALIZED",
        "denormalized",
    ),
    *(
        "\"quoted\" ``old'' style",
        "\u00ab\u00bb\u2039\u203a",
        "\u2581",
        "\u2581\u2581a",
        "a\u2581b",
    ),
    "a" + "\u0301\u0323" * 300,
    "\u200d" * 50,
    "\u0e33" * 20,
]

POOLS = [
    (0x20, 0x7E), (0x20, 0x7E), (0x20, 0x7E), (0x61, 0x7A), (0x00, 0x1F), (0x7F, 0xFF),
    (0x100, 0x24F), (0x300, 0x36F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF),
    (0x900, 0xDFF), (0xE00, 0xFFF), (0x1100, 0x11FF), (0x1AB0, 0x1AFF), (0x1D00, 0x1FFF),
    (0x2000, 0x206F), (0x2070, 0x218F), (0x2190, 0x2BFF), (0x3000, 0x30FF), (0x3130, 0x33FF),
    (0x4E00, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7FF), (0xE000, 0xE010), (0xF900, 0xFAFF),
    (0xFB00, 0xFDFF), (0xFE00, 0xFFFF), (0x10000, 0x107FF), (0x10A00, 0x11FFF),
    (0x1D100, 0x1D7FF), (0x1E000, 0x1EFFF), (0x1F000, 0x1FAFF), (0x1F300, 0x1F64F),
    (0x20000, 0x2FA1F), (0xE0000, 0xE01EF), (0, 0x10FFFF),
]  # fmt: skip
GLUE = ["\u200d", "\ufe0f", "\u200c", "\u0301", "\u0323", "\u094d", "\U0001f3fd", "\ufffd"]
GLUE += [" ", "  ", "\n", "'s"]


@dataclass(frozen=True)
class Row:
    """A text, maybe a second one, and the number of tokens that there is room for, 0 for any."""

    text: str
    pair: str | None = None
    limit: int = 0


def data_sets() -> list[str]:
    """Real texts in many languages."""
    many = ROOT / "android_demo/core/src/test/data/cc-by-sa/texts.txt.gz"
    texts = gzip.decompress(many.read_bytes()).decode().split("\n")
    for name, count in ("clinc150", 1500), ("banking77", 900), ("snips", 700):
        file = ROOT / "calibration/data" / name / "test.jsonl"
        with file.open(encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line in islice(lines, count)]
    return texts


def fuzz(rng: random.Random) -> str:
    """A line of characters, some of one script, some of any, with marks and joiners between."""
    parts = []
    pools = rng.choices(POOLS, k=rng.randint(1, 4))
    for _ in range(rng.randint(1, 40)):
        c = rng.randint(*rng.choice(pools))
        parts.append("\ufffd" if 0xD800 <= c < 0xE000 else chr(c))
        if rng.random() < 0.25:
            parts.append(rng.choice(GLUE))
        if rng.random() < 0.02:
            parts.append(rng.choice(SPECIALS))
    return "".join(parts)


def rows() -> list[Row]:
    """All rows, the same in every run."""
    rng = random.Random(SEED)
    texts = data_sets()
    lines = list(texts)
    for form in ("NFD", "NFKD", "NFC"):
        lines += [unicodedata.normalize(form, text) for text in rng.sample(texts, 400)]
    lines += [text.upper() for text in rng.sample(texts, 200)]
    lines += [text.replace(" ", "") for text in rng.sample(texts, 200)]
    lines += [text.replace(" ", f" {rng.choice(SPECIALS)} ", 1) for text in rng.sample(texts, 300)]
    lines += HAND_WRITTEN
    lines += [fuzz(rng) for _ in range(4000)]
    found = [Row(line) for line in lines]
    for _ in range(1500):
        pair = rng.choice(lines) if rng.random() < 0.7 else None
        found.append(Row(rng.choice(lines), pair, rng.randint(8, 40)))
    return found
