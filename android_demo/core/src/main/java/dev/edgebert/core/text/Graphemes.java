package dev.edgebert.core.text;

import java.util.Arrays;

/** Finds extended grapheme clusters: UAX 29, rules GB3 to GB13. */
final class Graphemes {

  private static final int OTHER = 0;
  private static final int CONTROL = 1;
  private static final int EXTEND = 2;
  private static final int PREPEND = 3;
  private static final int SPACING_MARK = 4;
  private static final int L = 5;
  private static final int V = 6;
  private static final int T = 7;
  private static final int ZWJ = 8;
  private static final int REGIONAL = 9;
  private static final int LV = 10;
  private static final int LVT = 11;

  /** Ranges as first, last and class in one long each, ascending. */
  private static final long[] RANGES = ranges();

  private Graphemes() {}

  /** The end of the cluster that starts at an index below the text's length. */
  static int end(NormalizedText text, int start) {
    int index = start;
    int before = classOf(text.at(index));
    boolean pictograph = UnicodeTables.PICTOGRAPHIC.contains(text.at(index));
    boolean joined = false; // a pictograph, extending characters and a joiner stand before
    int conjunct = conjunct(0, text.at(index)); // 1: after a consonant, 2: and a linker
    int regionals = before == REGIONAL ? 1 : 0;
    for (index++; index < text.length(); index++) {
      int c = text.at(index);
      int next = classOf(c);
      boolean pictographic = joined && UnicodeTables.PICTOGRAPHIC.contains(c);
      if (before == CONTROL || next == CONTROL) {
        boolean lineEnd = c == '\n' && text.at(index - 1) == '\r'; // GB3 to GB5
        return lineEnd ? index + 1 : index;
      }
      boolean joins =
          hangul(before, next) // GB6 to GB8
              || next == EXTEND
              || next == ZWJ
              || next == SPACING_MARK
              || before == PREPEND // GB9, a, b
              || conjunct == 2 && UnicodeTables.CONJUNCT_CONSONANT.contains(c) // GB9c
              || pictographic // GB11
              || next == REGIONAL && before == REGIONAL && regionals % 2 == 1; // GB12, 13
      if (!joins) {
        return index;
      }
      joined = pictograph && next == ZWJ;
      pictograph = pictograph && next == EXTEND || UnicodeTables.PICTOGRAPHIC.contains(c);
      conjunct = conjunct(conjunct, c);
      regionals += next == REGIONAL ? 1 : 0;
      before = next;
    }
    return index;
  }

  private static boolean hangul(int before, int next) {
    switch (before) {
      case L:
        return next == L || next == V || next == LV || next == LVT;
      case LV:
      case V:
        return next == V || next == T;
      case LVT:
      case T:
        return next == T;
      default:
        return false;
    }
  }

  private static int conjunct(int state, int c) {
    if (c < 0x300) {
      return 0;
    } else if (UnicodeTables.CONJUNCT_CONSONANT.contains(c)) {
      return 1;
    } else if (state == 0) {
      return 0;
    } else if (UnicodeTables.CONJUNCT_LINKER.contains(c)) {
      return 2;
    }
    return UnicodeTables.CONJUNCT_EXTEND.contains(c) ? state : 0;
  }

  private static int classOf(int c) {
    if (c >= ' ' && c < 0x7F) {
      return OTHER;
    } else if (c == 0x200D) {
      return ZWJ;
    } else if (c >= 0xAC00 && c < 0xD7A4) {
      return (c - 0xAC00) % 28 == 0 ? LV : LVT;
    } else if (c >= 0x1F1E6 && c <= 0x1F1FF) {
      return REGIONAL;
    }
    int found = Arrays.binarySearch(RANGES, (long) c << 32 | 0xFFFFFFFFL);
    int range = -found - 2;
    boolean inside = range >= 0 && c <= (RANGES[range] >> 8 & 0xFFFFFF);
    return inside ? (int) (RANGES[range] & 0xFF) : OTHER;
  }

  private static long[] ranges() {
    CodePointSet[] sets = {
      UnicodeTables.BREAK_CONTROL,
      UnicodeTables.BREAK_EXTEND,
      UnicodeTables.BREAK_PREPEND,
      UnicodeTables.BREAK_SPACING_MARK,
      UnicodeTables.BREAK_L,
      UnicodeTables.BREAK_V,
      UnicodeTables.BREAK_T
    };
    int count = 0;
    for (CodePointSet set : sets) {
      count += set.rangeCount();
    }
    long[] ranges = new long[count];
    for (int i = 0; i < sets.length; i++) {
      for (int j = 0; j < sets[i].rangeCount(); j++) {
        ranges[--count] = (long) sets[i].first(j) << 32 | (long) sets[i].last(j) << 8 | (i + 1);
      }
    }
    Arrays.sort(ranges);
    return ranges;
  }
}
