package dev.edgebert.core.measure;

import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.TextRow;
import dev.edgebert.core.engine.Classifier;
import dev.edgebert.core.text.Encoding;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The logits of one text. */
final class RowLogits {
  private RowLogits() {}

  /** What rows were run with, as {@code run.py --rows} says it in its first line. */
  static Map<String, Object> origin(Classifier classifier, DeviceInfo device) {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("bundle", classifier.bundle().manifest().sha256);
    values.put("format", classifier.model().format);
    values.put("runtime", classifier.runtime());
    values.put("padding", classifier.session().padding());
    values.put("machine", device.machine());
    return values;
  }

  /** As {@code run.py --rows} prints it. */
  static Map<String, Object> of(TextRow row, Classifier classifier)
      throws BundleException {
    int[] ids = row.ids;
    int[] typeIds = row.typeIds;
    boolean truncated = false;
    if (ids == null) {
      int most = classifier.model().maxLength;
      Encoding encoding = classifier.tokenizer().encode(row.text, row.textPair, most);
      ids = encoding.ids;
      typeIds = encoding.typeIds;
      truncated = classifier.isTruncated(row.text, row.textPair, encoding);
    }
    List<Object> lines = new ArrayList<>();
    for (float[] line : classifier.session().run(ids, typeIds)) {
      List<Object> numbers = new ArrayList<>(line.length);
      for (float logit : line) { // JSON has no NaN
        numbers.add(Float.isNaN(logit) || Float.isInfinite(logit) ? null : (Object) logit);
      }
      lines.add(numbers);
    }
    boolean tokens = classifier.bundle().manifest().task.equals("token");
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("id", row.id);
    values.put("logits", tokens ? lines : lines.get(0));
    values.put("truncated", truncated);
    return values;
  }
}
