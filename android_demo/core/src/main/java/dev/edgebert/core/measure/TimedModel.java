package dev.edgebert.core.measure;

import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.Checksum;
import dev.edgebert.core.engine.Engine;
import dev.edgebert.core.engine.Session;
import dev.edgebert.core.statistics.Latencies;
import dev.edgebert.core.statistics.Statistics;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** A model file under measurement: loaded, run once, and then many times. */
final class TimedModel implements AutoCloseable {
  /** A model file that can be loaded. */
  static final class Source {
    final String file;
    final String scheme;
    final ByteBuffer bytes;
    final String sha256;
    final Engine engine;
    final int padId;
    final boolean padsLeft;

    Source(
        String file, String scheme, ByteBuffer bytes, Engine engine, int padId, boolean padsLeft) {
      this.file = file;
      this.scheme = scheme;
      this.bytes = bytes;
      this.sha256 = Checksum.sha256(bytes);
      this.engine = engine;
      this.padId = padId;
      this.padsLeft = padsLeft;
    }
  }

  final Source source;
  final int threads;
  private final Session session;
  private final int[] ids;
  private final int[] typeIds;
  private final double loadMs;
  private final double firstRunMs;
  private final Double bareMb;
  private final Latencies latencies = new Latencies();
  private final String machine;
  private Double peakMb;

  /** Loads the model and runs it once. */
  TimedModel(Source source, int threads, int tokens, Device device) throws BundleException {
    this.source = source;
    this.threads = threads;
    ids = new int[tokens];
    typeIds = new int[tokens];
    Arrays.fill(ids, 1); // which tokens they are does not change the time
    machine = device.info().machine();
    bareMb = device.state().pssMb;
    long start = System.nanoTime();
    session = source.engine.load(source.bytes, threads, source.padId, source.padsLeft);
    loadMs = (System.nanoTime() - start) / 1e6;
    try {
      firstRunMs = runMs();
    } catch (BundleException error) {
      session.close();
      throw error;
    }
    peak(device.state());
  }

  /** One inference, in milliseconds; not recorded. */
  double runMs() throws BundleException {
    long start = System.nanoTime();
    session.run(ids, typeIds);
    return (System.nanoTime() - start) / 1e6;
  }

  Latencies latencies() {
    return latencies;
  }

  void peak(DeviceState state) {
    if (state.pssMb != null) {
      peakMb = peakMb == null ? state.pssMb : Math.max(peakMb, state.pssMb);
    }
  }

  double p50Ms() {
    return Statistics.percentile(latencies.sorted(), 50);
  }

  boolean ruleMet() {
    return latencies.count() >= MeasureSettings.RULE_INFERENCES
        && latencies.seconds() >= MeasureSettings.RULE_SECONDS;
  }

  /**
   * As {@code run.py --measure} prints it, and more.
   *
   * @param fp32 the file that it is compared with; null for none
   */
  Map<String, Object> json(int warmups, TimedModel fp32) {
    Map<String, Object> values = new LinkedHashMap<>();
    double[] sorted = latencies.sorted();
    values.put("file", source.file);
    values.put("file_sha256", source.sha256);
    values.put("scheme", source.scheme);
    values.put("runtime", source.engine.runtime());
    values.put("machine", machine);
    values.put("tokens", ids.length);
    values.put("threads", threads);
    values.put("warmups", warmups);
    values.put("runs", sorted.length);
    values.put("seconds", latencies.seconds());
    values.put("rule_met", ruleMet());
    values.put("load_ms", loadMs);
    values.put("first_run_ms", firstRunMs);
    values.put("mean_ms", latencies.mean());
    values.put("min_ms", sorted[0]);
    values.put("max_ms", sorted[sorted.length - 1]);
    percentiles(values, sorted);
    values.put("bare_mb", bareMb);
    values.put("peak_mb", peakMb);
    values.put("fp32_p50_ms", fp32 == null ? null : (Double) fp32.p50Ms());
    return values;
  }

  /** Adds p50, p90 and p99. */
  static void percentiles(Map<String, Object> values, double[] sorted) {
    for (int percent : new int[] {50, 90, 99}) {
      values.put("p" + percent + "_ms", Statistics.percentile(sorted, percent));
    }
  }

  @Override
  public void close() {
    session.close();
  }
}
