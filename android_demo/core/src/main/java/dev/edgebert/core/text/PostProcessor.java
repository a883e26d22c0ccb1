package dev.edgebert.core.text;

import java.util.List;

/** A step that adds special tokens, or changes the offsets of tokens. */
interface PostProcessor {

  /** How many tokens it adds to one sequence, or to a pair. */
  int added(boolean pair);

  /** Takes one or two sequences, and returns what is to be joined. */
  List<TokenList> process(List<TokenList> sequences);
}
