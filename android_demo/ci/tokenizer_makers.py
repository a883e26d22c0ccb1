"""Tokenizers of every supported kind, made in seconds of what the repository ships."""

import gzip
import json
import random
from pathlib import Path

from sentencepiece import sentencepiece_model_pb2
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

ROOT = Path(__file__).parents[2]
BERT_VOCABULARY = ROOT / "android_demo/core/src/test/data/bert-base-uncased.txt.gz"
SENTENCEPIECE = ROOT / "tests/data/unigram.model"
SHIPPED = ROOT / "pipeline/models/albert/tokenizer.json"
BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LARGE = 250_000


def bert_template(tokenizer: Tokenizer) -> processors.PostProcessor:
    """[CLS] A [SEP] B [SEP]."""
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    return processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )


def bert_uncased() -> Tokenizer:
    """BERT-base-uncased, as its tokenizer.json has it."""
    lines = gzip.decompress(BERT_VOCABULARY.read_bytes()).decode().removesuffix("\n").split("\n")
    vocabulary = {token: i for i, token in enumerate(lines)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(BERT_SPECIALS)
    tokenizer.post_processor = bert_template(tokenizer)
    return tokenizer


def bert_cased(texts: list[str]) -> Tokenizer:
    """WordPiece with case and accents, BertProcessing, and added tokens of every kind."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=12_000, special_tokens=BERT_SPECIALS, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    sep, cls = (("[SEP]", 3), ("[CLS]", 2))
    tokenizer.post_processor = processors.BertProcessing(sep, cls)
    tokenizer.add_tokens(
        [
            AddedToken("<custom>", single_word=True, normalized=False),
            AddedToken("Normalized", normalized=True),
            AddedToken("\u00e9t\u00e9", single_word=True, lstrip=True, rstrip=True),
            AddedToken("<0x41>", lstrip=True, normalized=False),
            AddedToken("##ing", rstrip=True, normalized=False),
        ]
    )
    tokenizer.enable_truncation(64, strategy="only_first")
    return tokenizer


def roberta(texts: list[str]) -> Tokenizer:
    """Byte-level BPE with RobertaProcessing, no space before the text."""
    tokenizer = byte_level(texts, prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return tokenizer


def byte_level(texts: list[str], *, prefix_space: bool = True) -> Tokenizer:
    """Byte-level BPE that normalizes (NFC), cuts from the left, and trims with ByteLevel."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    trainer = trainers.BpeTrainer(
        vocab_size=10_000,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if prefix_space:
        tokenizer.normalizer = normalizers.NFC()
        template = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A </s> $B", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        tokenizer.post_processor = processors.Sequence(
            [processors.ByteLevel(trim_offsets=True), template]
        )
        tokenizer.enable_truncation(64, direction="left")
    return tokenizer


def sentencepiece_model() -> sentencepiece_model_pb2.ModelProto:
    """The small model with rules nmt_nfkc that the Python tests use too."""
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(SENTENCEPIECE.read_bytes())
    return model


def precompiled() -> normalizers.Normalizer:
    """SentencePiece's rules nmt_nfkc: those of XLM-R and ALBERT."""
    return normalizers.Precompiled(sentencepiece_model().normalizer_spec.precompiled_charsmap)


def xlm_roberta(pieces: list[tuple[str, float]], *, converted: bool) -> Tokenizer:
    """A unigram model set up as XLM-RoBERTa's, as converters wrote it or transformers 5 does."""
    tokenizer = Tokenizer(models.Unigram(pieces, 3))
    tokenizer.normalizer = precompiled()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    if converted:
        steps = [normalizers.Strip(left=False), normalizers.Replace(Regex(" {2,}"), "\u2581")]
        tokenizer.normalizer = normalizers.Sequence([precompiled(), *steps])
    else:
        words = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(words)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return tokenizer


def case_model() -> Tokenizer:
    """The small SentencePiece model read as XLM-R's: ids are one higher than its own."""
    pieces = [(piece.piece, piece.score) for piece in sentencepiece_model().pieces]
    specials = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return xlm_roberta([*specials, *pieces[3:], ("<mask>", 0.0)], converted=False)


def xlm_roberta_large(texts: list[str]) -> Tokenizer:
    """250,000 pieces: parts of the words of the texts, and made-up words up to that number."""
    rng = random.Random(7)
    counts: dict[str, int] = {}
    for text in texts:
        for word in text.split():
            word = "\u2581" + word
            for start in range(len(word)):
                for end in range(start + 1, min(start + 12, len(word)) + 1):
                    part = word[start:end]
                    counts[part] = counts.get(part, 0) + 1
    ranked = sorted(counts, key=lambda part: (-counts[part] * len(part), part))
    chosen = dict.fromkeys(ranked[: LARGE // 2])
    letters = "abcdefghijklmnopqrstuvwxyz\u00e4\u00e9\u0438\u0430\u0645\u0627\u4e00\u4eba"
    while len(chosen) < LARGE:
        chosen["\u2581" + "".join(rng.choices(letters, k=rng.randint(2, 9)))] = None
    specials = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces = [(piece, -5 - 10 * rng.random() - len(piece) / 8) for piece in chosen]
    return xlm_roberta([*specials, *pieces, ("<mask>", 0.0)], converted=True)


def train_unigram(tokenizer: Tokenizer, texts: list[str], specials: list[str], size: int) -> None:
    """Trains the model of a tokenizer whose other parts are set."""
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=specials, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)


def albert(texts: list[str]) -> Tokenizer:
    """A unigram model set up as ALBERT's."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace("``", '"'),
            normalizers.Replace("''", '"'),
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            precompiled(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    train_unigram(tokenizer, texts, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], 4000)
    tokenizer.post_processor = bert_template(tokenizer)
    return tokenizer


def xlnet(texts: list[str]) -> Tokenizer:
    """A unigram model set up as XLNet's: [CLS] last, padded on the left; and bytes for unknowns."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(), precompiled()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]
    )
    specials = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>"]
    train_unigram(tokenizer, texts[::4], [*specials, *(f"<0x{b:02X}>" for b in range(256))], 3000)
    state = json.loads(tokenizer.to_str())
    state["model"]["byte_fallback"] = True
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2",
        pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
        special_tokens=[("<sep>", 4), ("<cls>", 3)],
    )
    tokenizer.enable_padding(direction="left", pad_id=5, pad_token="<pad>")
    return tokenizer


def bpe_with_bytes(texts: list[str]) -> Tokenizer:
    """BPE over characters with bytes for unknown ones, words cut by white space and kind."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Prepend("\u2581")])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(
        vocab_size=5000,
        limit_alphabet=300,
        special_tokens=["<unk>", *(f"<0x{b:02X}>" for b in range(0xE5))],  # not every byte
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def tokenizers_by_name(texts: list[str]) -> dict[str, Tokenizer]:
    """Every kind of tokenizer."""
    return {
        "shipped": Tokenizer.from_file(str(SHIPPED)),
        "bert-uncased": bert_uncased(),
        "bert-cased": bert_cased(texts),
        "roberta": roberta(texts),
        "byte-level": byte_level(texts),
        "unigram-case": case_model(),
        "xlm-roberta-large": xlm_roberta_large(texts),
        "albert": albert(texts),
        "xlnet": xlnet(texts),
        "bpe-bytes": bpe_with_bytes(texts),
    }
