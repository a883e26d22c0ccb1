package dev.edgebert.core.engine;

import java.util.Arrays;

/** One text as a model's inputs: values by input name, padded to a length. */
final class Row {
  final int length;
  private final int start;
  private final int count;
  private final int[] ids;
  private final int[] typeIds;
  private final int padId;

  /**
   * @param length tokens of the row, at least as many as there are ids
   * @param padsLeft true where padding goes before the text
   */
  Row(int[] ids, int[] typeIds, int length, int padId, boolean padsLeft) {
    this.ids = ids;
    this.typeIds = typeIds;
    this.length = length;
    this.padId = padId;
    count = ids.length;
    start = padsLeft ? length - count : 0;
  }

  /** The values of an input; null for one that nothing feeds. */
  int[] values(String input) {
    int[] values = new int[length];
    switch (input) {
      case "input_ids":
        Arrays.fill(values, padId);
        System.arraycopy(ids, 0, values, start, count);
        return values;
      case "attention_mask":
        Arrays.fill(values, start, start + count, 1);
        return values;
      case "token_type_ids":
        System.arraycopy(typeIds, 0, values, start, count);
        return values;
      default:
        return null;
    }
  }

  /** Logits of the text's own tokens out of a model's flat output of {@code shape}. */
  float[][] logits(float[] flat, long[] shape) {
    int columns = (int) shape[shape.length - 1];
    boolean tokens = shape.length == 3;
    float[][] rows = new float[tokens ? count : 1][];
    for (int row = 0; row < rows.length; row++) {
      int from = (tokens ? start + row : 0) * columns;
      rows[row] = Arrays.copyOfRange(flat, from, from + columns);
    }
    return rows;
  }
}
