package dev.edgebert.core.text;

/**
 * Greedy longest match from the left; a word that cannot be covered is unknown as a whole. Wu et
 * al., Google's Neural Machine Translation System, arXiv:1609.08144.
 */
final class WordPiece implements Model {

  private final Trie vocabulary;
  private final int unknown;
  private final int continuation;
  private final int maxCharacters;

  /**
   * Takes the vocabulary, the unknown token's id, what pieces inside a word start with, and the
   * number of characters from which on a word is unknown.
   */
  WordPiece(Trie vocabulary, int unknown, String prefix, int maxCharacters) {
    this.vocabulary = vocabulary;
    this.unknown = unknown;
    this.continuation = vocabulary.walk(Trie.ROOT, prefix);
    this.maxCharacters = maxCharacters;
  }

  @Override
  public void tokenize(NormalizedText word, TokenList out) {
    int before = out.length;
    int start = 0;
    while (start < word.length() && word.length() <= maxCharacters) {
      int node = start == 0 ? Trie.ROOT : continuation;
      int end = start;
      int id = Trie.NONE;
      for (int i = start; i < word.length() && node >= 0; i++) {
        node = vocabulary.step(node, word.at(i));
        if (node >= 0 && vocabulary.value(node) >= 0) {
          end = i + 1;
          id = vocabulary.value(node);
        }
      }
      if (id < 0) {
        break;
      }
      out.add(id, word, start, end);
      start = end;
    }
    if (start < word.length()) {
      out.length = before;
      out.add(unknown, word.start(0), word.end(word.length() - 1));
    }
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
