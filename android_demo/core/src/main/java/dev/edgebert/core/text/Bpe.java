package dev.edgebert.core.text;

/**
 * Byte pair encoding: merges the neighbors whose merge was learned first, again and again. Sennrich
 * et al., arXiv:1508.07909. A heap keeps it at n log n for a word of n characters.
 */
final class Bpe implements Model {

  private final Trie vocabulary;
  private final PairTable merges;
  private final int unknown;
  private final boolean fuseUnknown;
  private final boolean ignoreMerges;
  private final int[] byteIds;

  /**
   * Takes vocabulary and merges, the unknown token's id or -1 where unknown characters vanish,
   * whether neighbors that are unknown become one token, whether a word that is a token is not
   * looked into, and the id of each byte's token or null.
   */
  Bpe(
      Trie vocabulary,
      PairTable merges,
      int unknown,
      boolean fuseUnknown,
      boolean ignoreMerges,
      int[] byteIds) {
    this.vocabulary = vocabulary;
    this.merges = merges;
    this.unknown = unknown;
    this.fuseUnknown = fuseUnknown;
    this.ignoreMerges = ignoreMerges;
    this.byteIds = byteIds;
  }

  @Override
  public void tokenize(NormalizedText word, TokenList out) {
    if (ignoreMerges) {
      int node = Trie.ROOT;
      for (int i = 0; i < word.length() && node >= 0; i++) {
        node = vocabulary.step(node, word.at(i));
      }
      if (node >= 0 && vocabulary.value(node) >= 0) {
        out.add(vocabulary.value(node), word, 0, word.length());
        return;
      }
    }
    Symbols symbols = new Symbols(merges, utf8Length(word));
    addCharacters(word, symbols);
    symbols.merge();
    collect(word, symbols, out);
  }

  private void addCharacters(NormalizedText word, Symbols symbols) {
    int pending = 0; // bytes of unknown characters not yet added
    for (int i = 0; i < word.length(); i++) {
      int c = word.at(i);
      int size = Utf8.length(c);
      int node = vocabulary.step(Trie.ROOT, c);
      int id = node < 0 ? Trie.NONE : vocabulary.value(node);
      if (id >= 0) {
        if (pending > 0) {
          symbols.add(unknown, pending);
          pending = 0;
        }
        symbols.add(id, size);
      } else if (byteIds != null && Utf8.covers(byteIds, word, i, i + 1)) {
        for (int j = 0; j < size; j++) {
          symbols.add(byteIds[Utf8.unit(c, size, j)], 1);
        }
      } else if (unknown >= 0) {
        if (pending > 0 && !fuseUnknown) {
          symbols.add(unknown, pending);
          pending = 0;
        }
        pending += size;
      }
    }
    if (pending > 0) {
      symbols.add(unknown, pending);
    }
  }

  /** Symbols are measured in bytes of UTF-8; a character belongs to those that touch it. */
  private void collect(NormalizedText word, Symbols symbols, TokenList out) {
    int character = 0;
    int characterEnd = Utf8.length(word.at(0));
    int end = 0;
    for (int i = symbols.first(); i >= 0; i = symbols.next(i)) {
      while (characterEnd <= end) {
        characterEnd += Utf8.length(word.at(++character));
      }
      int first = character;
      end += symbols.length(i);
      while (characterEnd < end) {
        characterEnd += Utf8.length(word.at(++character));
      }
      if (symbols.id(i) == unknown) {
        out.add(unknown, word.start(first), word.end(character));
      } else {
        out.add(symbols.id(i), word, first, character + 1);
      }
    }
  }

  private static int utf8Length(NormalizedText word) {
    int total = 0;
    for (int i = 0; i < word.length(); i++) {
      total += Utf8.length(word.at(i));
    }
    return total;
  }

  @Override
  public int id(String token) {
    return vocabulary.get(token);
  }

  @Override
  public int size() {
    return vocabulary.size();
  }
}
