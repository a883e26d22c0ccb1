package dev.edgebert.core.statistics;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;

import org.junit.Test;

/** Values made with NumPy. */
public class StatisticsTest {
  @Test
  public void percentilesAreThoseOfNumpy() {
    double[] sorted = {1, 2, 4, 8, 16, 32, 64};
    assertEquals(8, Statistics.percentile(sorted, 50), 0);
    assertEquals(44.8, Statistics.percentile(sorted, 90), 1e-12);
    assertEquals(62.08, Statistics.percentile(sorted, 99), 1e-12);
    assertEquals(64, Statistics.percentile(sorted, 100), 0);
    assertEquals(3, Statistics.percentile(new double[] {3}, 99), 0);
  }

  @Test
  public void softmaxStandsLargeLogits() {
    double[] shares = Statistics.softmax(new float[] {1000, 1001, -1000});
    assertArrayEquals(new double[] {0.2689414, 0.7310586, 0}, shares, 1e-6);
    assertEquals(0.5, Statistics.sigmoid(0), 0);
    assertEquals(0, Statistics.sigmoid(-1000), 0);
  }

  @Test
  public void latenciesGrow() {
    Latencies latencies = new Latencies();
    for (int value = 5000; value > 0; value--) {
      latencies.add(value);
    }
    assertEquals(5000, latencies.count());
    assertEquals(2500.5, latencies.mean(), 1e-9);
    assertEquals(1, latencies.sorted()[0], 0);
    assertEquals(12502.5, latencies.seconds(), 1e-6);
  }
}
