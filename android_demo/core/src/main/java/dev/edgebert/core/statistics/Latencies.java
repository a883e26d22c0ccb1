package dev.edgebert.core.statistics;

import java.util.Arrays;

/** Latencies of many inferences, in milliseconds; grows as they come. */
public final class Latencies {
  private double[] values = new double[2048];
  private int count;
  private double sum;

  public void add(double ms) {
    if (count == values.length) {
      values = Arrays.copyOf(values, 2 * count);
    }
    values[count++] = ms;
    sum += ms;
  }

  public int count() {
    return count;
  }

  /** Of all inferences together. */
  public double seconds() {
    return sum / 1e3;
  }

  public double mean() {
    return sum / count;
  }

  /** Ascending, for {@link Statistics#percentile}. */
  public double[] sorted() {
    double[] sorted = Arrays.copyOf(values, count);
    Arrays.sort(sorted);
    return sorted;
  }
}
