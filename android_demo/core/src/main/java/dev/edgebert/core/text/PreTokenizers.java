package dev.edgebert.core.text;

import java.util.ArrayList;
import java.util.List;

/** The pre-tokenizers that are a few lines each. */
final class PreTokenizers {

  private PreTokenizers() {}

  /** One after the other, each on the pieces of the one before. */
  static PreTokenizer sequence(List<PreTokenizer> steps) {
    return (text, out) -> {
      List<NormalizedText> pieces = new ArrayList<>();
      pieces.add(text);
      for (PreTokenizer step : steps) {
        List<NormalizedText> next = new ArrayList<>();
        for (NormalizedText piece : pieces) {
          if (piece.length() > 0) {
            step.split(piece, next);
          }
        }
        pieces = next;
      }
      out.addAll(pieces);
    };
  }

  /** Words between white space. */
  static void whitespaceSplit(NormalizedText text, List<NormalizedText> out) {
    int start = 0;
    for (int i = 0; i <= text.length(); i++) {
      if (i == text.length() || UnicodeTables.isWhitespace(text.at(i))) {
        add(text, start, i, out);
        start = i + 1;
      }
    }
  }

  /** Words between white space, with every punctuation mark on its own. */
  static void bert(NormalizedText text, List<NormalizedText> out) {
    int start = 0;
    for (int i = 0; i < text.length(); i++) {
      int c = text.at(i);
      boolean space = UnicodeTables.isWhitespace(c);
      if (space || UnicodeTables.PUNCTUATION.contains(c)) {
        add(text, start, i, out);
        if (!space) {
          add(text, i, i + 1, out);
        }
        start = i + 1;
      }
    }
    add(text, start, text.length(), out);
  }

  /** The regular expression {@code \w+|[^\w\s]+}. */
  static void whitespace(NormalizedText text, List<NormalizedText> out) {
    int start = 0;
    int before = 0;
    for (int i = 0; i < text.length(); i++) {
      int c = text.at(i);
      int kind = UnicodeTables.isWhitespace(c) ? 0 : UnicodeTables.WORD.contains(c) ? 1 : 2;
      if (kind != before) {
        if (before != 0) {
          add(text, start, i, out);
        }
        start = i;
        before = kind;
      }
    }
    if (before != 0) {
      add(text, start, text.length(), out);
    }
  }

  private static void add(NormalizedText text, int start, int end, List<NormalizedText> out) {
    if (end > start) {
      out.add(text.slice(start, end));
    }
  }
}
