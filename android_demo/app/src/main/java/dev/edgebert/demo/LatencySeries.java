package dev.edgebert.demo;

import dev.edgebert.core.statistics.Statistics;
import java.util.Arrays;

/**
 * Latencies for a chart: at most so many points, each the median and the highest of an equal number
 * of inferences. When it is full, neighbors are joined and each point stands for twice as many.
 */
final class LatencySeries {
  static final int MOST_POINTS = 240;
  private static final int RECENT = 512;

  private final double[] medians = new double[MOST_POINTS];
  private final double[] highest = new double[MOST_POINTS];
  private final double[] recent = new double[RECENT];
  private double[] pending = new double[1];
  private int points;
  private int waiting;
  private int count;

  synchronized void add(double ms) {
    recent[count++ % RECENT] = ms;
    pending[waiting++] = ms;
    if (waiting < pending.length) {
      return;
    }
    Arrays.sort(pending);
    medians[points] = Statistics.percentile(pending, 50);
    highest[points] = pending[waiting - 1];
    points++;
    waiting = 0;
    if (points == MOST_POINTS) {
      for (int index = 0; index < MOST_POINTS / 2; index++) {
        medians[index] = (medians[2 * index] + medians[2 * index + 1]) / 2;
        highest[index] = Math.max(highest[2 * index], highest[2 * index + 1]);
      }
      points = MOST_POINTS / 2;
      pending = new double[2 * pending.length];
    }
  }

  /** A copy of the points: medians and highest. */
  synchronized double[][] points() {
    return new double[][] {Arrays.copyOf(medians, points), Arrays.copyOf(highest, points)};
  }

  /** p50, p90 and p99 of the last inferences; null before the first. */
  synchronized double[] percentiles() {
    if (count == 0) {
      return null;
    }
    double[] sorted = Arrays.copyOf(recent, Math.min(count, RECENT));
    Arrays.sort(sorted);
    return new double[] {
      Statistics.percentile(sorted, 50),
      Statistics.percentile(sorted, 90),
      Statistics.percentile(sorted, 99)
    };
  }
}
