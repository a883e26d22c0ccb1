package dev.edgebert.core.text;

/** What makes tokens of the pieces of a text. */
interface Model {

  /** Adds the tokens of a piece that is not empty. */
  void tokenize(NormalizedText piece, TokenList out);

  /** The id of a token, or {@link Trie#NONE}. */
  int id(String token);

  /** The number of tokens. */
  int size();
}
