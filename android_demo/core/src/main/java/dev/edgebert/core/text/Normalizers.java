package dev.edgebert.core.text;

import java.util.List;

/** The normalizers that are a few lines each. */
final class Normalizers {

  private Normalizers() {}

  /** One after the other. */
  static Normalizer sequence(List<Normalizer> steps) {
    return text -> {
      for (Normalizer step : steps) {
        text = step.normalize(text);
      }
      return text;
    };
  }

  /** Lower case without a locale: U+0130 becomes i and a dot above, on Turkish phones too. */
  static NormalizedText lowercase(NormalizedText text) {
    TextBuilder out = new TextBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      int c = text.at(i);
      int[] lower = c < 0x80 ? null : UnicodeTables.LOWERCASE.get(c);
      if (lower == null) {
        out.replace(text, i, c >= 'A' && c <= 'Z' ? c + 32 : c);
      } else {
        for (int part : lower) {
          out.replace(text, i, part);
        }
      }
    }
    return out.build();
  }

  /** Without the characters of a set. */
  static NormalizedText remove(NormalizedText text, CodePointSet removed) {
    TextBuilder out = new TextBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      if (!removed.contains(text.at(i))) {
        out.copy(text, i);
      }
    }
    return out.build();
  }

  /** Without white space at the start or the end or both. */
  static Normalizer strip(boolean left, boolean right) {
    return text -> {
      int start = 0;
      int end = text.length();
      while (left && start < end && UnicodeTables.isWhitespace(text.at(start))) {
        start++;
      }
      while (right && end > start && UnicodeTables.isWhitespace(text.at(end - 1))) {
        end--;
      }
      return text.slice(start, end);
    };
  }

  /** With something before it, unless it is empty. */
  static Normalizer prepend(String added) {
    return text -> text.prepend(NormalizedText.of(added).toArray());
  }

  /** SentencePiece's rule nmt: control characters vanish, unusual spaces become a space. */
  static NormalizedText nmt(NormalizedText text) {
    TextBuilder out = new TextBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      int c = text.at(i);
      boolean control =
          c >= 0x01 && c <= 0x08
              || c == 0x0B
              || c >= 0x0E && c <= 0x1F
              || c == 0x7F
              || c == 0x8F
              || c == 0x9F;
      boolean space =
          c == 0x09
              || c == 0x0A
              || c == 0x0C
              || c == 0x0D
              || c == 0x1680
              || c >= 0x200B && c <= 0x200F
              || c == 0x2028
              || c == 0x2029
              || c == 0x2581
              || c == 0xFEFF
              || c == 0xFFFD;
      if (!control) {
        out.replace(text, i, space ? ' ' : c);
      }
    }
    return out.build();
  }
}
