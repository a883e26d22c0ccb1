package dev.edgebert.core.text;

/** UTF-8, one code point at a time. */
final class Utf8 {

  private Utf8() {}

  /** The number of bytes of a code point. */
  static int length(int c) {
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  }

  /** A byte of a code point, 0 to 255. */
  static int unit(int c, int length, int index) {
    if (length == 1) {
      return c;
    }
    int bits = c >> 6 * (length - 1 - index);
    return index == 0 ? 0xF00 >> length & 0xFF | bits : 0x80 | bits & 0x3F;
  }

  /** Whether every byte of some characters has an id that is not negative. */
  static boolean covers(int[] byteIds, NormalizedText text, int from, int to) {
    for (int i = from; i < to; i++) {
      int length = length(text.at(i));
      for (int j = 0; j < length; j++) {
        if (byteIds[unit(text.at(i), length, j)] < 0) {
          return false;
        }
      }
    }
    return true;
  }
}
