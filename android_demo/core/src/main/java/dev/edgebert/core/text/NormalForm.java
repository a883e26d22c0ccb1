package dev.edgebert.core.text;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * The four normal forms of Unicode (UAX 15), with alignments as the Rust crate {@code
 * unicode-normalization-alignments} gives them.
 */
enum NormalForm implements Normalizer {
  NFC(false, true),
  NFD(false, false),
  NFKC(true, true),
  NFKD(true, false);

  private static final int HANGUL = 0xAC00;
  private static final int HANGUL_END = 0xD7A4;
  private static final int LEADING = 0x1100;
  private static final int VOWEL = 0x1161;
  private static final int TRAILING = 0x11A7;
  private static final Map<Long, Integer> PAIRS = new HashMap<>();

  static {
    for (int i = 0; i < UnicodeTables.COMPOSED.size(); i++) {
      int[] pair = UnicodeTables.COMPOSED.value(i);
      PAIRS.put((long) pair[0] << 32 | pair[1], UnicodeTables.COMPOSED.key(i));
    }
  }

  private final boolean compatible;
  private final boolean composed;

  NormalForm(boolean compatible, boolean composed) {
    this.compatible = compatible;
    this.composed = composed;
  }

  @Override
  public NormalizedText normalize(NormalizedText text) {
    int i = 0;
    while (i < text.length() && text.at(i) < 0x80) {
      i++;
    }
    if (i == text.length()) {
      return text;
    }
    Edits decomposed = decompose(text);
    return (composed ? compose(decomposed) : decomposed).apply(text);
  }

  private Edits decompose(NormalizedText text) {
    Edits out = new Edits(text.length() + 16);
    int starter = 0;
    for (int i = 0; i < text.length(); i++) {
      int c = text.at(i);
      int[] parts = parts(c);
      for (int j = 0; j < (parts == null ? 1 : parts.length); j++) {
        int part = parts == null ? c : parts[j];
        if (combiningClass(part) == 0) {
          sort(out, starter);
          starter = out.length();
        }
        out.add(part, j == 0 ? 0 : 1);
      }
    }
    sort(out, starter);
    return out;
  }

  private int[] parts(int c) {
    if (c < 0x80) {
      return null;
    }
    if (c >= HANGUL && c < HANGUL_END) {
      int index = c - HANGUL;
      int leading = LEADING + index / 588;
      int vowel = VOWEL + index % 588 / 28;
      int trailing = TRAILING + index % 28;
      return trailing == TRAILING
          ? new int[] {leading, vowel}
          : new int[] {leading, vowel, trailing};
    }
    int[] found = compatible ? UnicodeTables.COMPATIBLE.get(c) : null;
    return found != null ? found : UnicodeTables.CANONICAL.get(c);
  }

  private static int combiningClass(int c) {
    int[] found = c < 0x300 ? null : UnicodeTables.COMBINING_CLASS.get(c);
    return found == null ? 0 : found[0];
  }

  /** Puts marks in canonical order, those of one class as they stand. */
  private static void sort(Edits edits, int from) {
    int count = edits.length() - from;
    boolean sorted = true;
    for (int i = from + 1; i < edits.length() && sorted; i++) {
      sorted = combiningClass(edits.character(i - 1)) <= combiningClass(edits.character(i));
    }
    if (sorted) {
      return;
    }
    long[] keys = new long[count];
    int[] characters = new int[count];
    int[] changes = new int[count];
    for (int i = 0; i < count; i++) {
      characters[i] = edits.character(from + i);
      changes[i] = edits.change(from + i);
      keys[i] = (long) combiningClass(characters[i]) << 32 | i;
    }
    Arrays.sort(keys);
    for (int i = 0; i < count; i++) {
      edits.set(from + i, characters[(int) keys[i]], changes[(int) keys[i]]);
    }
  }

  private static Edits compose(Edits in) {
    Edits out = new Edits(in.length());
    int starter = -1; // its index in out
    int lastClass = -1; // of the last mark after it that stays
    for (int i = 0; i < in.length(); i++) {
      int c = in.character(i);
      int thisClass = combiningClass(c);
      if (starter >= 0 && lastClass < thisClass) {
        int pair = pair(out.character(starter), c);
        if (pair >= 0) {
          out.set(starter, pair, out.change(starter) + in.change(i) - 1);
          continue;
        }
      }
      if (thisClass == 0) {
        starter = out.length();
        lastClass = -1;
      } else if (starter >= 0) {
        lastClass = thisClass;
      }
      out.add(c, in.change(i));
    }
    return out;
  }

  private static int pair(int a, int b) {
    if (a >= LEADING && a < LEADING + 19 && b >= VOWEL && b < VOWEL + 21) {
      return HANGUL + ((a - LEADING) * 21 + b - VOWEL) * 28;
    }
    boolean open = a >= HANGUL && a < HANGUL_END && (a - HANGUL) % 28 == 0;
    if (open && b > TRAILING && b < TRAILING + 28) {
      return a + b - TRAILING;
    }
    Integer found = PAIRS.get((long) a << 32 | b);
    return found == null ? -1 : found;
  }
}
