package dev.edgebert.core.text;

import java.util.Arrays;

/** Builds a {@link NormalizedText} character by character. */
final class TextBuilder {

  private int[] characters;
  private int[] starts;
  private int[] ends;
  private int length;

  TextBuilder(int capacity) {
    characters = new int[capacity];
    starts = new int[capacity];
    ends = new int[capacity];
  }

  /** Adds a character that stands for a part of the original. */
  void add(int c, int start, int end) {
    if (length == characters.length) {
      int capacity = 2 * length + 8;
      characters = Arrays.copyOf(characters, capacity);
      starts = Arrays.copyOf(starts, capacity);
      ends = Arrays.copyOf(ends, capacity);
    }
    characters[length] = c;
    starts[length] = start;
    ends[length++] = end;
  }

  /** Adds another character in the place of one of a text. */
  void replace(NormalizedText text, int index, int c) {
    add(c, text.start(index), text.end(index));
  }

  /** Adds a character of a text. */
  void copy(NormalizedText text, int index) {
    replace(text, index, text.at(index));
  }

  NormalizedText build() {
    return new NormalizedText(characters, starts, ends, 0, length);
  }
}
