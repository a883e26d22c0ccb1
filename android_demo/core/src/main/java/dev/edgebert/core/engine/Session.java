package dev.edgebert.core.engine;

import dev.edgebert.core.bundle.BundleException;

/** A loaded model; one inference at a time. */
public interface Session extends AutoCloseable {
  /**
   * Runs one text.
   *
   * @param ids token ids, special tokens included, no padding
   * @param typeIds segment ids, as many
   * @return logits [1][labels], or [tokens][labels] of the text's own tokens
   * @throws BundleException MODEL_REFUSED; TOO_LARGE for more tokens than the model takes
   */
  float[][] run(int[] ids, int[] typeIds) throws BundleException;

  /** How rows are padded, in run.py's words. */
  String padding();

  @Override
  void close();
}
