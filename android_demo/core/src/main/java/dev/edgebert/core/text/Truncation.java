package dev.edgebert.core.text;

/** How one or two sequences are cut to a number of tokens. */
final class Truncation {

  /** Which sequence is cut. */
  enum Strategy {
    LONGEST_FIRST,
    ONLY_FIRST,
    ONLY_SECOND
  }

  private final Strategy strategy;
  private final boolean keepsLast;

  Truncation(Strategy strategy, boolean keepsLast) {
    this.strategy = strategy;
    this.keepsLast = keepsLast;
  }

  /**
   * Cuts the sequences to a number of tokens together.
   *
   * @param second null where there is one sequence only
   * @throws IllegalArgumentException where the sequence to cut is too short for that
   */
  void apply(TokenList first, TokenList second, int limit) {
    int total = first.length + (second == null ? 0 : second.length);
    if (limit == 0) {
      cut(first, 0);
      cut(second, 0);
    } else if (total <= limit) {
      return;
    } else if (strategy != Strategy.LONGEST_FIRST) {
      TokenList target = strategy == Strategy.ONLY_FIRST ? first : second;
      int kept = target == null ? 0 : target.length - (total - limit);
      if (kept <= 0) {
        throw new IllegalArgumentException(
            "the sequence that " + strategy + " cuts is too short for " + limit + " tokens");
      }
      cut(target, kept);
    } else if (second == null) {
      cut(first, limit);
    } else {
      cutLongest(first, second, limit);
    }
  }

  private void cutLongest(TokenList first, TokenList second, int limit) {
    boolean swapped = first.length > second.length;
    int shorter = Math.min(first.length, second.length);
    int longer = shorter > limit ? shorter : Math.max(shorter, limit - shorter);
    if (shorter + longer > limit) {
      shorter = limit / 2;
      longer = shorter + limit % 2;
    }
    cut(first, swapped ? longer : shorter);
    cut(second, swapped ? shorter : longer);
  }

  private void cut(TokenList tokens, int limit) {
    if (tokens != null) {
      tokens.truncate(limit, keepsLast);
    }
  }
}
