package dev.edgebert.core.measure;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Whether a model file gives the bundle's golden answers on this device. */
public final class GoldenResult {
  private static final int MOST_FAULTS = 100;

  public final String format;
  public final String runtime;
  public final int rows;

  /** Largest difference of a logit. */
  public final double maxAbs;

  public final double tolerance;

  /** In words. */
  public final List<String> faults;

  GoldenResult(
      String format,
      String runtime,
      int rows,
      double maxAbs,
      double tolerance,
      List<String> faults) {
    this.format = format;
    this.runtime = runtime;
    this.rows = rows;
    this.maxAbs = maxAbs;
    this.tolerance = tolerance;
    this.faults = Collections.unmodifiableList(faults);
  }

  public boolean passed() {
    return rows > 0 && faults.isEmpty();
  }

  /** As {@code run.py --check} prints it. */
  Map<String, Object> json() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("passed", passed());
    values.put("format", format);
    values.put("runtime", runtime);
    values.put("rows", rows);
    values.put("max_abs", maxAbs);
    values.put("tolerance", tolerance);
    values.put("faults", faults.subList(0, Math.min(faults.size(), MOST_FAULTS)));
    return values;
  }
}
