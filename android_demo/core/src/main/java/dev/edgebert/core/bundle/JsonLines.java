package dev.edgebert.core.bundle;

import dev.edgebert.core.bundle.BundleException.Problem;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A file with a JSON object in each line. */
final class JsonLines {
  private JsonLines() {}

  /** Makes a row of an object. */
  interface Maker<T> {
    T make(Fields fields) throws BundleException;
  }

  /**
   * Reads all lines.
   *
   * @throws BundleException UNREADABLE or NOT_A_BUNDLE
   */
  static <T> List<T> read(BundleFiles files, String file, Maker<T> maker) throws BundleException {
    List<T> rows = new ArrayList<>();
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(files.open(file), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String where = files.name() + ", " + file + ", " + (rows.size() + 1);
        rows.add(maker.make(Fields.parse(where, line)));
      }
    } catch (IOException error) {
      throw new BundleException(Problem.UNREADABLE, file, error);
    }
    return rows;
  }
}
