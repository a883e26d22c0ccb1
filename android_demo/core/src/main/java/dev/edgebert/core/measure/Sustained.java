package dev.edgebert.core.measure;

import dev.edgebert.core.statistics.Latencies;
import dev.edgebert.core.statistics.Statistics;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A sustained run, window by window: what heat does. */
final class Sustained {
  static final double WINDOW_SECONDS = 10;

  private final String file;
  private final int threads;
  private final List<Object> windows = new ArrayList<>();
  private double seconds;
  private int runs;
  private double firstP50Ms;
  private double lastP50Ms;

  Sustained(String file, int threads) {
    this.file = file;
    this.threads = threads;
  }

  double seconds() {
    return seconds;
  }

  void add(Latencies window, DeviceState state) {
    double[] sorted = window.sorted();
    lastP50Ms = Statistics.percentile(sorted, 50);
    firstP50Ms = windows.isEmpty() ? lastP50Ms : firstP50Ms;
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("from_seconds", seconds);
    values.put("runs", sorted.length);
    TimedModel.percentiles(values, sorted);
    values.put("state", state.json());
    windows.add(values);
    seconds += window.seconds();
    runs += sorted.length;
  }

  Map<String, Object> json() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("file", file);
    values.put("threads", threads);
    values.put("seconds", seconds);
    values.put("runs", runs);
    values.put("slowdown", lastP50Ms / firstP50Ms);
    values.put("windows", windows);
    return values;
  }
}
