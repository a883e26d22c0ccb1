package dev.edgebert.core.measure;

/** What a run is to do. */
public final class Job {
  /** Name of the bundle. */
  public final String bundle;

  /** Which of its model files; null for the first that can run. */
  public final String format;

  /** Threads of the golden texts and rows; 0 for what the target says. */
  public final int threads;

  /** Null where nothing is measured. */
  public final MeasureSettings settings;

  /** True for the logits of the texts in rows.jsonl. */
  public final boolean rows;

  private Job(String bundle, String format, int threads, MeasureSettings settings, boolean rows) {
    this.bundle = bundle;
    this.format = format;
    this.threads = threads;
    this.settings = settings;
    this.rows = rows;
  }

  /** The golden texts alone. */
  public static Job golden(String bundle, String format, int threads) {
    return new Job(bundle, format, threads, null, false);
  }

  /** The golden texts, and a measurement. */
  public static Job measure(String bundle, String format, MeasureSettings settings) {
    return new Job(bundle, format, 0, settings, false);
  }

  /** The logits of many texts. */
  public static Job rows(String bundle, String format, int threads) {
    return new Job(bundle, format, threads, null, true);
  }

  /** As the schema has it. */
  public String kind() {
    return rows ? "rows" : settings == null ? "golden" : "measure";
  }
}
