package dev.edgebert.core.text;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Prints how long texts of about 128 tokens take, for every tokenizer: run it with {@code java -cp
 * target/classes:target/test-classes dev.edgebert.core.text.TokenizerBenchmark}.
 */
public final class TokenizerBenchmark {

  private static final int TOKENS = 128;
  private static final int RUNS = 2000;

  private TokenizerBenchmark() {}

  public static void main(String[] arguments) throws Exception {
    List<Values.Row> rows = Values.rows();
    for (String name : Values.names()) {
      long before = Values.cpuTime();
      final Tokenizer tokenizer = Values.tokenizer(name);
      final long load = (Values.cpuTime() - before) / 1_000_000;
      List<String> texts = new ArrayList<>();
      for (int row = 0; texts.size() < 50; ) {
        StringBuilder text = new StringBuilder();
        int length = 0;
        while (length < TOKENS) {
          text.append(rows.get(row++).text).append(' ');
          length = tokenizer.encode(text.toString(), null, Tokenizer.NO_LIMIT).length();
        }
        texts.add(text.toString());
      }
      long[] times = new long[RUNS];
      for (int warmUp = 2; warmUp >= 0; warmUp--) {
        for (int i = 0; i < RUNS; i++) {
          long start = System.nanoTime();
          tokenizer.encode(texts.get(i % texts.size()), null, TOKENS);
          times[i] = System.nanoTime() - start;
        }
      }
      Arrays.sort(times);
      System.out.printf(
          "%-20s loaded in %4d ms of CPU, %.3f ms median, %.3f ms p90%n",
          name, load, times[RUNS / 2] / 1e6, times[RUNS * 9 / 10] / 1e6);
    }
  }
}
