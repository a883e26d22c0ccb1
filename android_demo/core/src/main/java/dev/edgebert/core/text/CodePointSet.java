package dev.edgebert.core.text;

import java.util.Arrays;

/** A set of code points, kept as ascending ranges. */
final class CodePointSet {

  private final int[] firsts;
  private final int[] lasts;
  private final boolean[] small = new boolean[256];

  /** Takes the first and the last code point of every range, ascending. */
  CodePointSet(int[] firsts, int[] lasts) {
    this.firsts = firsts;
    this.lasts = lasts;
    for (int c = 0; c < small.length; c++) {
      small[c] = search(c);
    }
  }

  boolean contains(int codePoint) {
    return codePoint < small.length ? small[codePoint] : search(codePoint);
  }

  int rangeCount() {
    return firsts.length;
  }

  int first(int range) {
    return firsts[range];
  }

  int last(int range) {
    return lasts[range];
  }

  private boolean search(int codePoint) {
    int found = Arrays.binarySearch(firsts, codePoint);
    int range = found >= 0 ? found : -found - 2;
    return range >= 0 && codePoint <= lasts[range];
  }
}
