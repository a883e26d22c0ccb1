package dev.edgebert.core.text;

import static org.junit.Assert.assertTrue;

import dev.edgebert.core.json.Json;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.zip.GZIPInputStream;

/** The folder that {@code android_demo/ci/tokenizer_values.py} made. */
final class Values {

  /** A text, maybe a second one, and the number of tokens that there is room for. */
  static final class Row {

    final String text;
    final String pair;
    final int limit;

    Row(Map<?, ?> fields) {
      text = (String) fields.get("text");
      pair = (String) fields.get("pair");
      int given = ((Long) fields.get("limit")).intValue();
      limit = given == 0 ? Tokenizer.NO_LIMIT : given;
    }
  }

  private static final List<Row> rows = new ArrayList<>();

  private Values() {}

  static File folder() {
    File folder = new File(System.getProperty("tokenizer.values", "target/tokenizer-values"));
    assertTrue(
        "no " + folder + ": run python android_demo/ci/tokenizer_values.py " + folder,
        new File(folder, "texts.jsonl").exists());
    return folder;
  }

  /** The names of all tokenizers. */
  static List<String> names() {
    List<String> names = new ArrayList<>();
    for (String file : folder().list()) {
      if (file.endsWith(".json")) {
        names.add(file.substring(0, file.length() - 5));
      }
    }
    assertTrue(names.size() > 0);
    names.sort(null);
    return names;
  }

  static Tokenizer tokenizer(String name) throws IOException, TokenizerException {
    try (InputStream stream = Files.newInputStream(folder().toPath().resolve(name + ".json"))) {
      return Tokenizer.load(stream);
    }
  }

  static synchronized List<Row> rows() throws IOException {
    if (!rows.isEmpty()) {
      return rows;
    }
    try (InputStream stream = Files.newInputStream(folder().toPath().resolve("texts.jsonl"))) {
      for (String line : lines(stream)) {
        rows.add(new Row((Map<?, ?>) Json.parse(new java.io.StringReader(line))));
      }
    }
    return rows;
  }

  /** For each row "id start end type" of every token. */
  static List<String> expected(String name) throws IOException {
    try (InputStream stream = Files.newInputStream(folder().toPath().resolve(name + ".txt.gz"))) {
      return lines(new GZIPInputStream(stream));
    }
  }

  static List<String> lines(InputStream stream) throws IOException {
    BufferedReader reader =
        new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8));
    List<String> lines = new ArrayList<>();
    for (String line = reader.readLine(); line != null; line = reader.readLine()) {
      lines.add(line);
    }
    return lines;
  }

  /** An encoding as the values are written. */
  static String written(Tokenizer tokenizer, Row row) {
    Encoding found;
    try {
      found = tokenizer.encode(row.text, row.pair, row.limit);
    } catch (IllegalArgumentException e) {
      return "error";
    }
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < found.length(); i++) {
      out.append(i == 0 ? "" : " ").append(found.ids[i]);
      out.append(' ').append(found.starts[i]).append(' ').append(found.ends[i]);
      out.append(' ').append(found.typeIds[i]);
    }
    return out.toString();
  }

  /** Nanoseconds that this thread has computed: other processes do not count. */
  static long cpuTime() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }

  /** A text with escapes, for messages. */
  static String visible(String text) {
    StringBuilder out = new StringBuilder();
    for (char c : text.toCharArray()) {
      out.append(c >= ' ' && c < 0x7F ? String.valueOf(c) : String.format("\\u%04x", (int) c));
    }
    return out + " " + Arrays.toString(text.codePoints().limit(40).toArray());
  }
}
