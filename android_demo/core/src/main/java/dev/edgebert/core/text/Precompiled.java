package dev.edgebert.core.text;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * SentencePiece's compiled normalization rules: a double-array trie (darts-clone) over UTF-8, and
 * the replacements, each ended by a zero byte.
 *
 * <p>As in the Rust crate {@code spm_precompiled}, a grapheme cluster of less than six bytes is
 * looked up as a whole, and the shortest rule that is a prefix of it replaces all of it.
 */
final class Precompiled implements Normalizer {

  private final int[] trie;
  private final byte[] replacements;

  /**
   * Takes the rules as they stand in a SentencePiece model.
   *
   * @throws TokenizerException where they are cut off
   */
  Precompiled(byte[] charsMap) throws TokenizerException {
    ByteBuffer buffer = ByteBuffer.wrap(charsMap).order(ByteOrder.LITTLE_ENDIAN);
    int size = charsMap.length < 4 ? -1 : buffer.getInt();
    if (size < 4 || size > buffer.remaining()) {
      throw new TokenizerException("normalizer Precompiled: the precompiled_charsmap is damaged");
    }
    trie = new int[size / 4];
    buffer.asIntBuffer().get(trie);
    replacements = new byte[charsMap.length - 4 - size];
    System.arraycopy(charsMap, 4 + size, replacements, 0, replacements.length);
  }

  @Override
  public NormalizedText normalize(NormalizedText text) {
    Edits edits = new Edits(text.length() + 16);
    byte[] bytes = new byte[8];
    boolean changed = false;
    for (int start = 0; start < text.length(); ) {
      int end = Graphemes.end(text, start);
      int length = end - start < 6 ? encode(text, start, end, bytes) : 6;
      int rule = length < 6 && end - start > 1 ? find(bytes, length) : -1;
      if (rule >= 0) {
        replace(edits, end - start, rule);
        changed = true;
      } else {
        for (int i = start; i < end; i++) {
          rule = find(bytes, encode(text, i, i + 1, bytes));
          if (rule >= 0) {
            replace(edits, 1, rule);
            changed = true;
          } else {
            edits.add(text.at(i), 0);
          }
        }
      }
      start = end;
    }
    return changed ? edits.apply(text) : text;
  }

  /** Writes characters as UTF-8; stops, and returns 6 or more, where five bytes are not enough. */
  private static int encode(NormalizedText text, int start, int end, byte[] bytes) {
    int length = 0;
    for (int i = start; i < end; i++) {
      int c = text.at(i);
      int size = Utf8.length(c);
      if (length + size > 5) {
        return 6;
      }
      for (int j = 0; j < size; j++) {
        bytes[length++] = (byte) Utf8.unit(c, size, j);
      }
    }
    return length;
  }

  /** Where the replacement of the shortest prefix starts, or -1. */
  private int find(byte[] key, int length) {
    int node = offset(trie[0]);
    for (int i = 0; i < length && key[i] != 0; i++) {
      node ^= key[i] & 0xFF;
      if (node >= trie.length || (trie[node] & 0x800000FF) != (key[i] & 0xFF)) {
        return -1;
      }
      boolean leaf = (trie[node] >> 8 & 1) == 1;
      node ^= offset(trie[node]);
      if (leaf) {
        return node < trie.length ? trie[node] & 0x7FFFFFFF : -1;
      }
    }
    return -1;
  }

  private static int offset(int unit) {
    return (unit >>> 10) << ((unit & 1 << 9) >> 6);
  }

  private void replace(Edits edits, int oldCount, int rule) {
    int before = edits.length();
    int i = rule;
    while (i < replacements.length && replacements[i] != 0) {
      int lead = replacements[i] & 0xFF;
      int size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
      int c = size == 1 ? lead : lead & (0xFF >> (size + 1));
      for (int j = 1; j < size && i + j < replacements.length; j++) {
        c = c << 6 | replacements[i + j] & 0x3F;
      }
      edits.add(c, 0);
      i += size;
    }
    int newCount = edits.length() - before;
    for (int j = edits.length() - 1; j >= before + oldCount; j--) {
      edits.set(j, edits.character(j), 1);
    }
    int last = edits.length() - 1;
    if (newCount < oldCount && last >= 0) {
      edits.set(last, edits.character(last), edits.change(last) + newCount - oldCount);
    }
  }
}
