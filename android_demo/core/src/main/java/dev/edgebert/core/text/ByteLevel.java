package dev.edgebert.core.text;

import java.util.List;

/**
 * GPT-2's pre-tokenizer: words with the space before them, as the bytes of their UTF-8, each byte
 * as a printable character. See {@code encoder.py} in openai/gpt-2.
 *
 * <p>Its regular expression is a scanner here, which never goes back by more than one character:
 * {@code 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+}.
 */
final class ByteLevel implements PreTokenizer {

  /** The character of the byte 0x20. */
  static final int SPACE = 0x120;

  private static final int[] CHARACTERS = new int[256];

  static {
    int next = 0x100;
    for (int b = 0; b < 256; b++) {
      boolean printable = b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE;
      CHARACTERS[b] = printable ? b : next++;
    }
  }

  private final boolean prefixSpace;
  private final boolean words;

  ByteLevel(boolean prefixSpace, boolean words) {
    this.prefixSpace = prefixSpace;
    this.words = words;
  }

  @Override
  public void split(NormalizedText text, List<NormalizedText> out) {
    if (prefixSpace && text.length() > 0 && text.at(0) != ' ') {
      text = text.prepend(' ');
    }
    for (int start = 0; start < text.length(); ) {
      int end = words ? wordEnd(text, start) : text.length();
      out.add(toBytes(text, start, end));
      start = end;
    }
  }

  private static NormalizedText toBytes(NormalizedText text, int start, int end) {
    TextBuilder out = new TextBuilder(end - start + 8);
    for (int i = start; i < end; i++) {
      int c = text.at(i);
      int size = Utf8.length(c);
      for (int j = 0; j < size; j++) {
        out.replace(text, i, CHARACTERS[Utf8.unit(c, size, j)]);
      }
    }
    return out.build();
  }

  private static int wordEnd(NormalizedText text, int start) {
    int length = text.length();
    int c = text.at(start);
    if (c == '\'' && start + 1 < length) {
      int second = text.at(start + 1);
      int third = start + 2 < length ? text.at(start + 2) : 0;
      if (second == 's' || second == 't' || second == 'm' || second == 'd') {
        return start + 2;
      }
      boolean two = (second == 'r' || second == 'v') && third == 'e';
      if (two || second == 'l' && third == 'l') {
        return start + 3;
      }
    }
    int first = c == ' ' && start + 1 < length ? start + 1 : start;
    int kind = kind(text.at(first));
    if (kind != 0) {
      int end = first + 1;
      while (end < length && kind(text.at(end)) == kind) {
        end++;
      }
      return end;
    }
    int end = start + 1;
    while (end < length && UnicodeTables.isWhitespace(text.at(end))) {
      end++;
    }
    // The last one of several spaces belongs to the word that follows.
    return end < length && end - start > 1 ? end - 1 : end;
  }

  /** 0: white space, 1: letter, 2: number, 3: other. */
  private static int kind(int c) {
    if (UnicodeTables.isWhitespace(c)) {
      return 0;
    }
    return UnicodeTables.LETTER.contains(c) ? 1 : UnicodeTables.NUMBER.contains(c) ? 2 : 3;
  }
}
