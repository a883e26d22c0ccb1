package dev.edgebert.core.text;

import java.util.Arrays;

/** Tokens of one sequence, with what post-processing needs to know of each. */
final class TokenList {

  int[] ids;
  int[] typeIds;
  int[] starts;
  int[] ends;

  /** How many spaces a token starts and ends with: see {@link OffsetTrimmer}. */
  int[] leadingSpaces;

  int[] trailingSpaces;
  int length;

  TokenList(int capacity) {
    ids = new int[capacity];
    typeIds = new int[capacity];
    starts = new int[capacity];
    ends = new int[capacity];
    leadingSpaces = new int[capacity];
    trailingSpaces = new int[capacity];
  }

  /** Adds a token that stands for some characters of a text; none is longer than the text. */
  void add(int id, NormalizedText text, int from, int to) {
    add(id, text.start(from), text.end(to - 1));
    int spaces = 0;
    while (from + spaces < to && isSpace(text.at(from + spaces))) {
      spaces++;
    }
    leadingSpaces[length - 1] = spaces;
    spaces = 0;
    while (to - spaces > from && isSpace(text.at(to - spaces - 1))) {
      spaces++;
    }
    trailingSpaces[length - 1] = spaces;
  }

  /** Adds a token that is not in the text, or has no spaces to trim. */
  void add(int id, int start, int end) {
    if (length == ids.length) {
      resize(2 * length + 8);
    }
    ids[length] = id;
    starts[length] = start;
    ends[length++] = end;
  }

  void setTypes(int typeId) {
    Arrays.fill(typeIds, 0, length, typeId);
  }

  /** Keeps at most some tokens, the first ones or the last ones. */
  void truncate(int limit, boolean keepLast) {
    if (length > limit) {
      int from = keepLast ? length - limit : 0;
      for (int[] field : fields()) {
        System.arraycopy(field, from, field, 0, limit);
      }
      length = limit;
    }
  }

  void append(TokenList more) {
    int total = length + more.length;
    if (total > ids.length) {
      resize(total);
    }
    int[][] ours = fields();
    int[][] theirs = more.fields();
    for (int i = 0; i < ours.length; i++) {
      System.arraycopy(theirs[i], 0, ours[i], length, more.length);
    }
    length = total;
  }

  private int[][] fields() {
    return new int[][] {ids, typeIds, starts, ends, leadingSpaces, trailingSpaces};
  }

  private void resize(int capacity) {
    ids = Arrays.copyOf(ids, capacity);
    typeIds = Arrays.copyOf(typeIds, capacity);
    starts = Arrays.copyOf(starts, capacity);
    ends = Arrays.copyOf(ends, capacity);
    leadingSpaces = Arrays.copyOf(leadingSpaces, capacity);
    trailingSpaces = Arrays.copyOf(trailingSpaces, capacity);
  }

  private static boolean isSpace(int c) {
    return c == ByteLevel.SPACE || UnicodeTables.isWhitespace(c);
  }
}
