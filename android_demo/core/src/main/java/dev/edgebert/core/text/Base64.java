package dev.edgebert.core.text;

import java.util.Arrays;

/** Decodes base64 (RFC 4648); {@code java.util.Base64} came to Android with API 26 only. */
final class Base64 {

  private static final String ALPHABET =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  private static final int[] VALUES = new int[128];

  static {
    Arrays.fill(VALUES, -1);
    for (int i = 0; i < ALPHABET.length(); i++) {
      VALUES[ALPHABET.charAt(i)] = i;
    }
  }

  private Base64() {}

  /**
   * The bytes that a text stands for.
   *
   * @throws IllegalArgumentException for a character that is no base64
   */
  static byte[] decode(String text) {
    int length = text.length();
    while (length > 0 && text.charAt(length - 1) == '=') {
      length--;
    }
    byte[] out = new byte[(int) (length * 6L / 8)];
    int bits = 0;
    int held = 0;
    int count = 0;
    for (int i = 0; i < length; i++) {
      char c = text.charAt(i);
      int value = c < 128 ? VALUES[c] : -1;
      if (value < 0) {
        throw new IllegalArgumentException("character " + i + " is not base64");
      }
      bits = bits << 6 | value;
      held += 6;
      if (held >= 8) {
        held -= 8;
        out[count++] = (byte) (bits >> held);
      }
    }
    return out;
  }
}
