package dev.edgebert.core.text;

import java.util.Arrays;

/** A map from code points to short strings of code points, or to single numbers. */
final class CodePointMap {

  private final int[] keys;
  private final int[][] values;

  /** Takes ascending keys and the value of each. */
  CodePointMap(int[] keys, int[][] values) {
    this.keys = keys;
    this.values = values;
  }

  /** The value of a code point, or null; not to be changed. */
  int[] get(int codePoint) {
    if (keys.length == 0 || codePoint < keys[0]) {
      return null;
    }
    int found = Arrays.binarySearch(keys, codePoint);
    return found >= 0 ? values[found] : null;
  }

  int size() {
    return keys.length;
  }

  int key(int index) {
    return keys[index];
  }

  int[] value(int index) {
    return values[index];
  }
}
