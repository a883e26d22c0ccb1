package dev.edgebert.core.json;

import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;

/** Characters (UTF-16 units) of a reader, or of a stream of strict UTF-8, one at a time. */
final class Utf8Source {

  private static final int SIZE = 1 << 16;

  private final InputStream stream;
  private final Reader reader;
  private final byte[] bytes;
  private final char[] characters = new char[SIZE];
  private int byteCount;
  private int bytePosition;
  private int count;
  private int position;
  private long consumed;

  Utf8Source(InputStream stream) {
    this.stream = stream;
    this.reader = null;
    this.bytes = new byte[SIZE];
  }

  Utf8Source(Reader reader) {
    this.stream = null;
    this.reader = reader;
    this.bytes = null;
  }

  /** The next character without taking it, or -1 at the end. */
  int peek() throws IOException {
    if (position == count) {
      fill();
    }
    return position < count ? characters[position] : -1;
  }

  /** The next character, or -1 at the end. */
  int next() throws IOException {
    int c = peek();
    if (c >= 0) {
      position++;
    }
    return c;
  }

  /** How many characters were taken: where an error is. */
  long offset() {
    return consumed + position;
  }

  private void fill() throws IOException {
    consumed += count;
    position = 0;
    count = 0;
    if (reader != null) {
      count = Math.max(reader.read(characters), 0);
      return;
    }
    while (count < SIZE - 1) {
      int first = nextByte();
      if (first < 0) {
        return;
      }
      if (first < 0x80) {
        characters[count++] = (char) first;
      } else {
        decode(first);
      }
      if (bytePosition == byteCount) {
        return;
      }
    }
  }

  /** Unicode 15.0, table 3-7: no overlong form, no surrogate, nothing above U+10FFFF. */
  private void decode(int first) throws IOException {
    int length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    int codePoint = first & (0xFF >> (length + 1));
    for (int i = 1; i < length; i++) {
      int following = nextByte();
      if ((following & 0xC0) != 0x80) {
        throw new JsonException("not UTF-8 after character " + (consumed + count));
      }
      codePoint = codePoint << 6 | following & 0x3F;
    }
    boolean overlong = codePoint < (length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000);
    boolean surrogate = codePoint >= 0xD800 && codePoint < 0xE000;
    if (first < 0xC2 || first > 0xF4 || overlong || surrogate || codePoint > 0x10FFFF) {
      throw new JsonException("not UTF-8 after character " + (consumed + count));
    }
    if (length < 4) {
      characters[count++] = (char) codePoint;
    } else {
      characters[count++] = Character.highSurrogate(codePoint);
      characters[count++] = Character.lowSurrogate(codePoint);
    }
  }

  private int nextByte() throws IOException {
    if (bytePosition == byteCount) {
      bytePosition = 0;
      byteCount = Math.max(stream.read(bytes), 0);
      if (byteCount == 0) {
        return -1;
      }
    }
    return bytes[bytePosition++] & 0xFF;
  }
}
