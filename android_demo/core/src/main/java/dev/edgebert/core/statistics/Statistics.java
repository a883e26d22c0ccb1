package dev.edgebert.core.statistics;

/** Percentiles and what logits say. */
public final class Statistics {
  private Statistics() {}

  /**
   * A percentile, with linear interpolation as NumPy's default has it.
   *
   * @param sorted ascending, not empty
   * @param percent 0 to 100
   */
  public static double percentile(double[] sorted, double percent) {
    double place = (sorted.length - 1) * percent / 100;
    int low = (int) place;
    int high = Math.min(low + 1, sorted.length - 1);
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
  }

  /** Shares that add up to 1. */
  public static double[] softmax(float[] logits) {
    double highest = Double.NEGATIVE_INFINITY;
    for (float logit : logits) {
      highest = Math.max(highest, logit);
    }
    double[] shares = new double[logits.length];
    double sum = 0;
    for (int index = 0; index < logits.length; index++) {
      shares[index] = Math.exp(logits[index] - highest);
      sum += shares[index];
    }
    for (int index = 0; index < logits.length; index++) {
      shares[index] /= sum;
    }
    return shares;
  }

  /** 1 / (1 + exp(-logit)). */
  public static double sigmoid(double logit) {
    return 1 / (1 + Math.exp(-logit));
  }

  /** Index of the largest value, the first of equal ones. */
  public static int argmax(double[] values) {
    int best = 0;
    for (int index = 1; index < values.length; index++) {
      best = values[index] > values[best] ? index : best;
    }
    return best;
  }
}
