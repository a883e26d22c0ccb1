package dev.edgebert.core.measure;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * How long to measure.
 *
 * <p>MLPerf Inference's rule for a single stream: at least 1,024 inferences and at least 60 s. A slow
 * model ends at {@code maxSeconds}, and its result says that the rule was not met.
 */
public final class MeasureSettings {
  public static final int RULE_INFERENCES = 1024;
  public static final double RULE_SECONDS = 60;
  public static final int WARMUPS = 50;
  public static final double MOST_SECONDS = 600;

  public final int[] threads;

  /** Tokens of a measured row; 0 for the shortest length of the bundle's target. */
  public final int tokens;

  public final int warmups;
  public final int minInferences;
  public final double minSeconds;
  public final double maxSeconds;

  /** Length of the sustained run; 0 for none. */
  public final double sustainedSeconds;

  public MeasureSettings(
      int[] threads,
      int tokens,
      int warmups,
      int minInferences,
      double minSeconds,
      double maxSeconds,
      double sustainedSeconds) {
    this.threads = threads.clone();
    this.tokens = tokens;
    this.warmups = warmups;
    this.minInferences = minInferences;
    this.minSeconds = minSeconds;
    this.maxSeconds = maxSeconds;
    this.sustainedSeconds = sustainedSeconds;
  }

  /** By the rule. */
  public static MeasureSettings standard(int[] threads, double sustainedSeconds) {
    return new MeasureSettings(
        threads, 0, WARMUPS, RULE_INFERENCES, RULE_SECONDS, MOST_SECONDS, sustainedSeconds);
  }

  /** As the schema has it. */
  Map<String, Object> json(int measuredTokens) {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("tokens", measuredTokens);
    values.put("warmups", warmups);
    values.put("min_inferences", minInferences);
    values.put("min_seconds", minSeconds);
    values.put("max_seconds", maxSeconds);
    values.put("sustained_seconds", sustainedSeconds);
    return values;
  }
}
