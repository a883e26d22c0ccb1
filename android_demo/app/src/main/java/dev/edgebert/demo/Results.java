package dev.edgebert.demo;

import android.content.Context;
import dev.edgebert.core.json.Json;
import dev.edgebert.core.measure.ResultFile;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Results of measurements, a file each. */
final class Results {
  private static final String SUFFIX = ".json";
  private static final String PROGRESS = ".progress";
  private static final String FOLDER = "results";
  private static final String RUNNING = "running";

  private final Context context;

  Results(Context context) {
    this.context = context;
  }

  /** Removes what an ended process left; true where it was ended during a run. */
  boolean clean() {
    ResultFile.clean(inner());
    if (outer() != null) {
      ResultFile.clean(outer());
    }
    return running().delete();
  }

  /** Marks that a run goes on, until {@link #clean} or false. */
  void mark(boolean runs) throws IOException {
    if (runs) {
      ResultFile.writeLine(running(), Collections.emptyMap());
    } else {
      running().delete();
    }
  }

  /** Results of runs that were started on the phone, the newest first. */
  List<File> list() {
    List<File> files = new ArrayList<>();
    File[] found = inner().listFiles();
    for (File file : found == null ? new File[0] : found) {
      if (file.getName().endsWith(SUFFIX)) {
        files.add(file);
      }
    }
    files.sort((left, right) -> right.getName().compareTo(left.getName()));
    return files;
  }

  /** Where the result of a run goes that was started on the phone. */
  File file(String startedAt) {
    return new File(inner(), startedAt.replaceAll("[^0-9TZ]", "") + SUFFIX);
  }

  /** Where the result of a run goes that adb started; null while the storage is not there. */
  File pulled(String name) {
    return outer() == null ? null : new File(outer(), name + SUFFIX);
  }

  /** Where such a run tells its progress. */
  File progress(String name) {
    return outer() == null ? null : new File(outer(), name + PROGRESS);
  }

  /** Reads a result. */
  static Map<?, ?> read(File file) throws IOException {
    try (Reader reader =
        new InputStreamReader(new FileInputStream(file), StandardCharsets.UTF_8)) {
      Object value = Json.parse(reader);
      if (!(value instanceof Map)) {
        throw new IOException("not a result: " + file.getName());
      }
      return (Map<?, ?>) value;
    }
  }

  private File running() {
    return new File(context.getFilesDir(), RUNNING);
  }

  private File inner() {
    return new File(context.getFilesDir(), FOLDER);
  }

  private File outer() {
    File folder = context.getExternalFilesDir(null);
    return folder == null ? null : new File(folder, FOLDER);
  }
}
