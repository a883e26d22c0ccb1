package dev.edgebert.core.text;

import java.util.Arrays;

/**
 * A new version of a text, as characters with the change that each makes: 0 where it takes the
 * place of one old character, 1 where it is added, -n where it takes the place of one and n more
 * that follow it.
 *
 * <p>This is how the Rust crate computes alignments; see {@code NormalizedString::transform}.
 */
final class Edits {

  private int[] characters;
  private int[] changes;
  private int length;

  Edits(int capacity) {
    characters = new int[capacity];
    changes = new int[capacity];
  }

  void add(int c, int change) {
    if (length == characters.length) {
      characters = Arrays.copyOf(characters, 2 * length + 8);
      changes = Arrays.copyOf(changes, 2 * length + 8);
    }
    characters[length] = c;
    changes[length++] = change;
  }

  int length() {
    return length;
  }

  int character(int index) {
    return characters[index];
  }

  int change(int index) {
    return changes[index];
  }

  void set(int index, int c, int change) {
    characters[index] = c;
    changes[index] = change;
  }

  /** The new version, aligned with the original of the old one. */
  NormalizedText apply(NormalizedText old) {
    TextBuilder out = new TextBuilder(length);
    int offset = 0;
    for (int i = 0; i < length; i++) {
      int index = changes[i] > 0 ? offset - 1 : offset;
      out.replace(old, Math.max(0, Math.min(index, old.length() - 1)), characters[i]);
      if (changes[i] <= 0) {
        offset += 1 - changes[i];
      }
    }
    return out.build();
  }
}
