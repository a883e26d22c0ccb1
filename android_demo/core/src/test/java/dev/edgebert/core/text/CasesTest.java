package dev.edgebert.core.text;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;

import dev.edgebert.core.json.JsonWriter;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.zip.GZIPInputStream;
import org.junit.After;
import org.junit.BeforeClass;
import org.junit.Test;

/** Faults that people met in other ports, with BERT-base-uncased's vocabulary. */
public class CasesTest {

  private static Tokenizer bert;
  private final Locale before = Locale.getDefault();

  @BeforeClass
  public static void load() throws Exception {
    try (InputStream file =
        Files.newInputStream(Paths.get("src/test/data/bert-base-uncased.txt.gz"))) {
      bert = wordPiece(Values.lines(new GZIPInputStream(file)), "true", "null");
    }
  }

  @After
  public void restoreLocale() {
    Locale.setDefault(before);
  }

  /** A WordPiece tokenizer as tokenizer.json describes it, without special tokens around. */
  private static Tokenizer wordPiece(List<String> vocabulary, String lower, String accents)
      throws Exception {
    StringBuilder vocab = new StringBuilder();
    JsonWriter writer = new JsonWriter(vocab).beginObject();
    for (int i = 0; i < vocabulary.size(); i++) {
      writer.name(vocabulary.get(i)).value(i);
    }
    writer.endObject();
    StringBuilder added = new StringBuilder();
    for (String token : Arrays.asList("[UNK]", "[CLS]", "[SEP]", "[MASK]")) {
      added.append(added.length() == 0 ? "" : ",").append("{\"content\":\"").append(token);
      added.append("\",\"normalized\":false,\"special\":true}");
    }
    String json =
        "{\"version\":\"1.0\",\"added_tokens\":["
            + added
            + "],\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
            + "\"handle_chinese_chars\":true,\"strip_accents\":"
            + accents
            + ",\"lowercase\":"
            + lower
            + "},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{\"type\":"
            + "\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
            + "\"max_input_chars_per_word\":100,\"vocab\":"
            + vocab
            + "}}";
    return Tokenizer.load(new ByteArrayInputStream(json.getBytes(StandardCharsets.UTF_8)));
  }

  private static void check(String text, int... ids) {
    check(bert, text, ids);
  }

  private static void check(Tokenizer tokenizer, String text, int... ids) {
    assertArrayEquals(text, ids, tokenizer.encode(text, null, Tokenizer.NO_LIMIT).ids);
  }

  @Test
  public void lineBreaksSplitWords() {
    check("note\nbook", 3602, 2338);
    check("one\nline", 2028, 2240);
    check("a\rb\tc", 1037, 1038, 1039);
  }

  @Test
  public void punctuationIsSplitOffOneByOne() {
    check("\u201cends\u201d", 1523, 4515, 1524);
    check("don\u2019t", 2123, 1521, 1056);
    check("stop!!!", 2644, 999, 999, 999);
    check("\u20ac5 $5", 1574, 2629, 1002, 1019);
    check("##ing", 1001, 1001, 13749);
    check("snake_case", 7488, 1035, 2553);
  }

  @Test
  public void longestPiecesFirst() {
    check("hiyuga hiyouga", 7632, 10513, 3654, 7632, 29337, 3654);
    check("wochenendtagenwecker", 24185, 8661, 10497, 26702, 2078, 8545, 9102);
  }

  @Test
  public void piecesInsideAWordCarryThePrefix() throws Exception {
    List<String> toy =
        Arrays.asList(
            "[PAD]",
            "[UNK]",
            "[CLS]",
            "[SEP]",
            "[MASK]",
            "wo",
            "##chen",
            "##end",
            "##tagen",
            "wecker",
            "radiowecker");
    check(wordPiece(toy, "true", "null"), "wochenendtagenwecker radiowecker", 1, 10);
  }

  @Test
  public void composedAndDecomposedAccentsAgree() {
    check("caf\u00e9", 7668);
    check("cafe\u0301", 7668);
    check("na\u0308chste", 6583, 18069, 2618);
    check("\u017ce wysok\u0105 izb\u0119", 27838, 1059, 7274, 12352, 1045, 2480, 4783);
  }

  @Test
  public void lowerCaseHasNoLocale() {
    for (Locale locale : Arrays.asList(Locale.ROOT, new Locale("tr", "TR"))) {
      Locale.setDefault(locale);
      check("TITLE", 2516);
      check("\u0130stanbul IZMIR", 9960, 1045, 2480, 14503);
    }
  }

  @Test
  public void aWordHasAtMostHundredCodePoints() {
    String hundred = String.join("", Collections.nCopies(100, "a"));
    Encoding found = bert.encode(hundred, null, Tokenizer.NO_LIMIT);
    assertEquals(50, found.length());
    for (int id : found.ids) {
      assertEquals(false, id == 100);
    }
    check(hundred + "a", 100);
  }

  @Test
  public void emojiStayInTheirWord() {
    check("good\ud83d\udc4d", 100);
    check("\ud83e\udd71 ok", 100, 7929);
    check("\ud83d\udc68\u200d\ud83d\udc69\u200d\ud83d\udc67", 100);
    check("\u2764\ufe0f", 100);
  }

  @Test
  public void literalSpecialTokensAreSpecial() {
    check("bad [SEP] good", 2919, 102, 2204);
    check("bad[SEP]good", 2919, 102, 2204);
    check("[mask] [MASK]", 1031, 7308, 1033, 103);
  }

  @Test
  public void caseAndAccentsAreAsTheFileSays() throws Exception {
    List<String> words =
        Arrays.asList(
            "[PAD]",
            "[UNK]",
            "[CLS]",
            "[SEP]",
            "[MASK]",
            "Apple",
            "apple",
            "is",
            "Caf\u00e9",
            "cafe");
    String text = "Apple is Caf\u00e9";
    check(wordPiece(words, "true", "null"), text, 6, 7, 9);
    check(wordPiece(words, "false", "null"), text, 5, 7, 8);
    check(wordPiece(words, "true", "false"), text, 6, 7, 1);
  }

  @Test
  public void aLineSeparatorIsAnEntryLikeAnother() throws Exception {
    List<String> words =
        Arrays.asList(
            "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "\u2028", "bad", "##ly", "film");
    check(wordPiece(words, "true", "null"), "film", 9);
    words.set(6, "");
    check(wordPiece(words, "true", "null"), "film", 9);
  }

  @Test
  public void sentencePieceReadAsXlmRoberta() throws Exception {
    Tokenizer tokenizer = Values.tokenizer("unigram-case");
    check(tokenizer, "good film", 0, 4, 18, 2);
    check(tokenizer, "", 0, 2);
    check(tokenizer, "\uff21\uff22\uff23 \uff11\uff10\uff10\u339e", 0, 14, 12, 32, 39, 2);
    check(tokenizer, "wait\u2026", 0, 21, 45, 45, 45, 2);
    check(tokenizer, "  good   film ", 0, 4, 18, 2);
    check(tokenizer, "good\u200bfilm", 0, 4, 18, 2);
    check(tokenizer, "\u6771\u4eac\u6771\u4eac", 0, 16, 27, 28, 2);
  }
}
