package dev.edgebert.core.text;

import java.util.List;

/** SentencePiece's spaces: they become a visible character, at which the text is split. */
final class Metaspace implements PreTokenizer {

  /** Where a text that does not start with a space gets one. */
  enum Prepend {
    FIRST,
    ALWAYS,
    NEVER
  }

  private final int replacement;
  private final Prepend prepend;
  private final boolean split;

  Metaspace(int replacement, Prepend prepend, boolean split) {
    this.replacement = replacement;
    this.prepend = prepend;
    this.split = split;
  }

  @Override
  public void split(NormalizedText text, List<NormalizedText> out) {
    boolean wanted =
        prepend == Prepend.ALWAYS || prepend == Prepend.FIRST && text.originalStart() == 0;
    int[] characters = text.toArray();
    for (int i = 0; i < characters.length; i++) {
      if (characters[i] == ' ') {
        characters[i] = replacement;
      }
    }
    text = text.withCharacters(characters);
    if (wanted && text.length() > 0 && text.at(0) != replacement) {
      text = text.prepend(replacement);
    }
    int start = 0;
    for (int i = 1; i < text.length() && split; i++) {
      if (text.at(i) == replacement) {
        out.add(text.slice(start, i));
        start = i;
      }
    }
    out.add(text.slice(start, text.length()));
  }
}
