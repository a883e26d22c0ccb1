package dev.edgebert.core.text;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.File;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import org.junit.Test;

/** What the values cannot show: Java's own strings, time, memory, and padding. */
public class TokenizerTest {

  private static final int LONG = 100_000;

  @Test
  public void aLoneSurrogateIsAReplacementCharacter() throws Exception {
    for (String name : Values.names()) {
      Tokenizer tokenizer = Values.tokenizer(name);
      int tried = 0;
      for (Values.Row row : Values.rows()) {
        if (row.text.contains("\ufffd") && row.pair == null) {
          for (String lone : new String[] {"\ud800", "\udc00"}) {
            Encoding found = tokenizer.encode(row.text.replace("\ufffd", lone), null, row.limit);
            Encoding expected = tokenizer.encode(row.text, null, row.limit);
            assertArrayEquals(expected.ids, found.ids);
            assertArrayEquals(expected.ends, found.ends);
          }
          tried++;
        }
      }
      assertTrue(tried + " rows", tried > 50);
    }
  }

  @Test
  public void offsetsInUtf16FindTheText() throws Exception {
    Tokenizer tokenizer = Values.tokenizer("bert-uncased");
    String text = "\ud83d\ude00 good \ud83d\udc4d\ud83d\udc4d film";
    Encoding found = tokenizer.encode(text, null, Tokenizer.NO_LIMIT);
    int[] starts = Encoding.toUtf16(found.starts, text);
    int[] ends = Encoding.toUtf16(found.ends, text);
    String[] parts = new String[found.length()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = text.substring(starts[i], ends[i]);
    }
    String[] expected = {"", "\ud83d\ude00", "good", "\ud83d\udc4d\ud83d\udc4d", "film", ""};
    assertArrayEquals(expected, parts);
  }

  @Test
  public void anyTextEndsSoon() throws Exception {
    List<String> texts =
        Arrays.asList(
            repeat("a", LONG),
            repeat("\u4e00", LONG),
            repeat(" ", LONG),
            repeat("\n ", LONG / 2),
            repeat("'", LONG),
            repeat("a\u0301\u0323", LONG / 3),
            repeat("\u0301\u0323", LONG / 2),
            repeat("\ud83d\udc68\u200d", LONG / 3),
            repeat("\ud83c\udde9", LONG / 2),
            repeat("\u0915\u094d", LONG / 2),
            repeat("[MASK]", LONG / 6),
            repeat("[MAS", LONG / 4),
            repeat(" <mask>", LONG / 7),
            repeat("ab", LONG / 2),
            repeat("\u2581", LONG));
    for (String name : Values.names()) {
      Tokenizer tokenizer = Values.tokenizer(name);
      for (String text : texts) {
        long start = Values.cpuTime();
        Encoding found = tokenizer.encode(text, null, 512);
        long milliseconds = (Values.cpuTime() - start) / 1_000_000;
        assertTrue(found.length() <= 512);
        String words = name + ", " + text.substring(0, 4) + ": " + milliseconds + " ms";
        assertTrue(words, milliseconds < 2000);
      }
    }
  }

  @Test
  public void aLargeVocabularyIsLoadedFastAndKeptSmall() throws Exception {
    File file = new File(Values.folder(), "xlm-roberta-large.json");
    Tokenizer kept = null;
    long best = Long.MAX_VALUE;
    for (int i = 0; i < 3; i++) {
      long start = Values.cpuTime();
      kept = Values.tokenizer("xlm-roberta-large");
      best = Math.min(best, Values.cpuTime() - start);
    }
    long with = used();
    assertEquals(250_001, kept.tokenId("<mask>") - 3); // and so it is still alive
    kept = null;
    long retained = with - used();
    System.out.printf(
        "250,000 pieces, %.1f MB of JSON: %d ms, %.1f MB kept%n",
        file.length() / 1e6, best / 1_000_000, retained / 1e6);
    assertTrue(best / 1_000_000 + " ms", best < 1_000_000_000L);
    assertTrue(retained + " bytes", retained < 40_000_000L);
  }

  @Test
  public void paddingIsKnown() throws Exception {
    assertEquals(0, Values.tokenizer("bert-uncased").padId());
    assertFalse(Values.tokenizer("bert-uncased").padLeft());
    assertEquals(1, Values.tokenizer("roberta").padId());
    assertEquals(5, Values.tokenizer("xlnet").padId());
    assertTrue(Values.tokenizer("xlnet").padLeft());
    assertEquals(-1, Values.tokenizer("bert-uncased").tokenId("no such token"));
    assertEquals(103, Values.tokenizer("bert-uncased").tokenId("[MASK]"));
  }

  @Test
  public void fewerTokensThanSpecialOnesAreRefused() throws Exception {
    Tokenizer tokenizer = Values.tokenizer("bert-uncased");
    assertArrayEquals(new int[] {101, 102}, tokenizer.encode("good", null, 2).ids);
    assertArrayEquals(new int[] {1, 1}, tokenizer.encode("good", null, 2).attentionMask);
    try {
      tokenizer.encode("good", "film", 2);
      fail();
    } catch (IllegalArgumentException e) {
      assertTrue(e.getMessage(), e.getMessage().contains("2 tokens"));
    }
  }

  @Test
  public void threadsMayShareATokenizer() throws Exception {
    Tokenizer tokenizer = Values.tokenizer("roberta");
    List<Values.Row> rows = Values.rows().subList(0, 2000);
    List<String> expected = Values.expected("roberta");
    long same =
        java.util.stream.IntStream.range(0, rows.size())
            .parallel()
            .filter(i -> Values.written(tokenizer, rows.get(i)).equals(expected.get(i)))
            .count();
    assertEquals(rows.size(), same);
  }

  @Test
  public void everyFileOfTheRepositoryIsSmall() throws Exception {
    long total;
    try (java.util.stream.Stream<java.nio.file.Path> files =
        Files.walk(new File("src/test/data").toPath())) {
      total = files.map(java.nio.file.Path::toFile).mapToLong(File::length).sum();
    }
    assertTrue(total + " bytes", total < 1_500_000);
  }

  private static long used() throws InterruptedException {
    for (int i = 0; i < 4; i++) {
      System.gc();
      Thread.sleep(20);
    }
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  private static String repeat(String part, int count) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < count; i++) {
      out.append(part);
    }
    return out.toString();
  }
}
