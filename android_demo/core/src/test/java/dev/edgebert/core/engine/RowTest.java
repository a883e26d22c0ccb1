package dev.edgebert.core.engine;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertNull;

import org.junit.Test;

/** Padding, and the logits of the tokens that are not padding. */
public class RowTest {
  private static final int[] IDS = {5, 6};
  private static final int[] TYPES = {0, 1};

  @Test
  public void paddingGoesToTheSideOfTheModel() {
    Row right = new Row(IDS, TYPES, 4, 9, false);
    assertArrayEquals(new int[] {5, 6, 9, 9}, right.values("input_ids"));
    assertArrayEquals(new int[] {1, 1, 0, 0}, right.values("attention_mask"));
    Row left = new Row(IDS, TYPES, 4, 9, true);
    assertArrayEquals(new int[] {9, 9, 5, 6}, left.values("input_ids"));
    assertArrayEquals(new int[] {0, 0, 0, 1}, left.values("token_type_ids"));
    assertNull(left.values("pixel_values"));
  }

  @Test
  public void logitsOfPaddingAreLeftOut() {
    float[] flat = {1, 2, 3, 4, 5, 6, 7, 8};
    Row left = new Row(IDS, TYPES, 4, 9, true);
    float[][] tokens = left.logits(flat, new long[] {1, 4, 2});
    assertArrayEquals(new float[] {5, 6}, tokens[0], 0);
    assertArrayEquals(new float[] {7, 8}, tokens[1], 0);
    assertArrayEquals(flat, left.logits(flat, new long[] {1, 8})[0], 0);
  }
}
