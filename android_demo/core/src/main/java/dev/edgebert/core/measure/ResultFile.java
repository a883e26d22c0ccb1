package dev.edgebert.core.measure;

import dev.edgebert.core.json.JsonWriter;
import java.io.BufferedWriter;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** A file that appears by one rename: all of it or nothing. */
public final class ResultFile {
  private static final String PARTIAL = ".partial";

  private ResultFile() {}

  /** Writes a document of several lines. */
  public static void write(File file, Map<String, Object> document) throws IOException {
    put(file, out -> new JsonWriter(out).any(document));
  }

  /** Writes a document as one line. */
  public static void writeLine(File file, Map<String, Object> document) throws IOException {
    // A line break inside a text is written as an escape, so that these are the writer's own.
    String line = text(document).replaceAll("\n *", "");
    put(file, out -> out.append(line));
  }

  /** A document as it would be written. */
  public static String text(Map<String, Object> document) throws IOException {
    StringBuilder text = new StringBuilder();
    new JsonWriter(text).any(document);
    return text.toString();
  }

  /** Removes what a run left that ended in the middle of a write. */
  public static void clean(File folder) {
    File[] files = folder.listFiles();
    for (File file : files == null ? new File[0] : files) {
      if (file.getName().endsWith(PARTIAL)) {
        file.delete();
      }
    }
  }

  private interface Content {
    void writeTo(Appendable out) throws IOException;
  }

  private static void put(File file, Content content) throws IOException {
    File folder = file.getParentFile();
    if (!folder.isDirectory() && !folder.mkdirs()) {
      throw new IOException("cannot make the folder " + folder);
    }
    File partial = new File(folder, "." + file.getName() + PARTIAL);
    try {
      try (FileOutputStream stream = new FileOutputStream(partial)) {
        Writer out = new BufferedWriter(new OutputStreamWriter(stream, StandardCharsets.UTF_8));
        content.writeTo(out);
        out.append('\n');
        out.flush();
        stream.getFD().sync();
      }
      if (!partial.renameTo(file)) {
        throw new IOException("cannot write " + file);
      }
    } finally {
      partial.delete();
    }
  }
}
