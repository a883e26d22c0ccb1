package dev.edgebert.core.measure;

import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.GoldenRow;
import dev.edgebert.core.bundle.Manifest;
import dev.edgebert.core.engine.Classifier;
import dev.edgebert.core.text.Encoding;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Proves a bundle on this device, by the rule of {@code run.py --check}: token ids equal, logits within
 * the manifest's tolerance, labels in the order of the model's ids.
 */
public final class GoldenCheck {
  private final Classifier classifier;
  private final List<String> faults = new ArrayList<>();
  private double maxAbs;

  private GoldenCheck(Classifier classifier) {
    this.classifier = classifier;
  }

  /**
   * Runs every golden row.
   *
   * @param listener asked whether to stop; told of the progress
   */
  public static GoldenResult run(Classifier classifier, List<GoldenRow> rows, RunListener listener)
      throws BundleException {
    GoldenCheck check = new GoldenCheck(classifier);
    for (int index = 0; index < rows.size(); index++) {
      if (listener.cancelled()) {
        throw new RunListener.CancelledException();
      }
      check.row("row " + (index + 1), rows.get(index));
    }
    return new GoldenResult(
        classifier.model().format,
        classifier.runtime(),
        rows.size(),
        check.maxAbs,
        classifier.model().goldenTolerance,
        check.faults);
  }

  private void row(String name, GoldenRow row) throws BundleException {
    Encoding encoding = classifier.tokenizer().encode(row.text, row.textPair, row.maxLength);
    if (!Arrays.equals(encoding.ids, row.ids) || !Arrays.equals(encoding.typeIds, row.typeIds)) {
      faults.add(name + ": other token ids");
    }
    // From the row's own ids: a fault of the tokenizer does not hide one of the model.
    float[][] logits = classifier.session().run(row.ids, row.typeIds);
    if (!sameShape(logits, row.expected)) {
      faults.add(name + ": logits of another shape");
      return;
    }
    double difference = 0;
    for (int line = 0; line < logits.length; line++) {
      for (int column = 0; column < logits[line].length; column++) {
        // Math.max hands NaN on, so that one is a fault too.
        difference =
            Math.max(difference, Math.abs(logits[line][column] - row.expected[line][column]));
      }
    }
    double tolerance = classifier.model().goldenTolerance;
    if (!(difference <= tolerance)) {
      faults.add(String.format(Locale.ROOT, "%s: a logit is off by %.3g", name, difference));
    }
    if (!Double.isNaN(difference)) {
      maxAbs = Math.max(maxAbs, difference);
    }
    if (!labels(row).equals(row.labels)) {
      faults.add(name + ": the labels are not in the order of the model's ids");
    }
  }

  private static boolean sameShape(float[][] left, float[][] right) {
    boolean same = left.length == right.length;
    for (int line = 0; same && line < left.length; line++) {
      same = left[line].length == right[line].length;
    }
    return same;
  }

  private List<String> labels(GoldenRow row) {
    Manifest manifest = classifier.bundle().manifest();
    if (manifest.task.equals("regression")) {
      return row.labels;
    }
    List<String> names = new ArrayList<>();
    for (float[] logits : row.reference) {
      int best = 0;
      for (int index = 1; index < logits.length; index++) {
        best = logits[index] > logits[best] ? index : best;
      }
      names.add(best < manifest.labels.size() ? manifest.labels.get(best) : "");
    }
    return names;
  }
}
