package dev.edgebert.core.text;

/**
 * A text under normalization: its code points, and for each the part of the original that it stands
 * for, in code points of the original.
 *
 * <p>Immutable; parts share the arrays of the whole. The alignments are those of the type {@code
 * NormalizedString} of Hugging Face's tokenizers, oddities included, since offsets must be equal.
 */
final class NormalizedText {

  private final int[] characters;
  private final int[] starts;
  private final int[] ends;
  private final int from;
  private final int to;

  NormalizedText(int[] characters, int[] starts, int[] ends, int from, int to) {
    this.characters = characters;
    this.starts = starts;
    this.ends = ends;
    this.from = from;
    this.to = to;
  }

  /** A text as it is; a lone surrogate becomes U+FFFD, as it does on the way to UTF-8. */
  static NormalizedText of(String text) {
    int[] characters = new int[text.length()];
    int count = 0;
    for (int i = 0; i < text.length(); ) {
      int c = text.codePointAt(i);
      i += Character.charCount(c);
      characters[count++] = c >= 0xD800 && c < 0xE000 ? 0xFFFD : c;
    }
    int[] starts = new int[count];
    int[] ends = new int[count];
    for (int i = 0; i < count; i++) {
      starts[i] = i;
      ends[i] = i + 1;
    }
    return new NormalizedText(characters, starts, ends, 0, count);
  }

  int length() {
    return to - from;
  }

  int at(int index) {
    return characters[from + index];
  }

  /** Where the original of a character starts. */
  int start(int index) {
    return starts[from + index];
  }

  /** Where the original of a character ends. */
  int end(int index) {
    return ends[from + index];
  }

  NormalizedText slice(int start, int end) {
    return new NormalizedText(characters, starts, ends, from + start, from + end);
  }

  /** Where the original of this text starts; 0 for one that is empty. */
  int originalStart() {
    return length() == 0 ? 0 : start(0);
  }

  /** The characters alone. */
  int[] toArray() {
    int[] copy = new int[length()];
    System.arraycopy(characters, from, copy, 0, copy.length);
    return copy;
  }

  /** This text with something before it that stands for the same original as its first one. */
  NormalizedText prepend(int... added) {
    if (length() == 0) {
      return this;
    }
    TextBuilder out = new TextBuilder(length() + added.length);
    for (int c : added) {
      out.add(c, start(0), end(0));
    }
    for (int i = 0; i < length(); i++) {
      out.copy(this, i);
    }
    return out.build();
  }

  /** This text with the same number of other characters. */
  NormalizedText withCharacters(int[] replaced) {
    int[] newStarts = new int[length()];
    int[] newEnds = new int[length()];
    System.arraycopy(starts, from, newStarts, 0, length());
    System.arraycopy(ends, from, newEnds, 0, length());
    return new NormalizedText(replaced, newStarts, newEnds, 0, length());
  }
}
