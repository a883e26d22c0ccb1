package dev.edgebert.core.measure;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/** Where a run is. */
public final class Progress {
  /** Its parts, in order. */
  public enum Phase {
    LOAD,
    GOLDEN,
    TOKENIZER,
    WARMUP,
    MEASURE,
    SUSTAINED,
    ROWS,
    DONE,
    FAILED
  }

  public final Phase phase;

  /** Share of the whole run that is done, 0 to 1. */
  public final double share;

  /** Threads of the model that runs; 0 where none does. */
  public final int threads;

  /** Name of the model file that runs; empty where none does. */
  public final String file;

  public Progress(Phase phase, double share, int threads, String file) {
    this.phase = phase;
    this.share = Math.min(1, Math.max(0, share));
    this.threads = threads;
    this.file = file;
  }

  /** One line of FILE.progress. */
  public Map<String, Object> json() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("schema_version", 1);
    values.put("phase", phase.name().toLowerCase(Locale.ROOT));
    values.put("percent", Math.round(share * 100));
    values.put("threads", threads);
    values.put("file", file);
    return values;
  }
}
