package dev.edgebert.core.text;

import java.util.List;

/** Keeps the spaces that a byte-level token starts or ends with out of its offsets. */
final class OffsetTrimmer implements PostProcessor {

  private final boolean prefixSpace;

  OffsetTrimmer(boolean prefixSpace) {
    this.prefixSpace = prefixSpace;
  }

  @Override
  public int added(boolean pair) {
    return 0;
  }

  @Override
  public List<TokenList> process(List<TokenList> sequences) {
    for (TokenList tokens : sequences) {
      for (int i = 0; i < tokens.length; i++) {
        trim(tokens, i);
      }
    }
    return sequences;
  }

  private void trim(TokenList tokens, int i) {
    int leading = tokens.leadingSpaces[i];
    int trailing = tokens.trailingSpaces[i];
    boolean first = i == 0 || tokens.starts[i] == 0;
    if (first && prefixSpace && leading == 1) {
      leading = 0; // it was added
    }
    tokens.starts[i] = Math.min(tokens.starts[i] + leading, tokens.ends[i]);
    if (trailing > 0 && tokens.ends[i] >= trailing) {
      tokens.ends[i] = Math.max(tokens.ends[i] - trailing, tokens.starts[i]);
    }
  }
}
