package dev.edgebert.core.text;

import java.util.Arrays;

/** Collects pieces with their ids, and makes a {@link Trie} of them. */
final class TrieBuilder {

  private byte[] bytes = new byte[1 << 12];
  private int[] ends = new int[1 << 8];
  private int[] ids = new int[1 << 8];
  private int count;

  /** Adds a piece; of equal pieces the last one counts. */
  void add(String piece, int id) {
    if (count == ids.length) {
      ends = Arrays.copyOf(ends, 2 * count);
      ids = Arrays.copyOf(ids, 2 * count);
    }
    int length = start(count);
    for (int i = 0; i < piece.length(); ) {
      int c = piece.codePointAt(i);
      i += Character.charCount(c);
      int size = Utf8.length(c);
      if (length + size > bytes.length) {
        bytes = Arrays.copyOf(bytes, 2 * bytes.length);
      }
      for (int j = 0; j < size; j++) {
        bytes[length++] = (byte) Utf8.unit(c, size, j);
      }
    }
    ids[count] = id;
    ends[count++] = length;
  }

  int count() {
    return count;
  }

  Trie build() {
    int[] order = new int[count];
    for (int i = 0; i < count; i++) {
      order[i] = i;
    }
    sort(order, 0, count, 0);

    int total = countNodes(order);
    byte[] labels = new byte[total];
    int[] firstChild = new int[total + 1];
    int[] values = new int[total];
    int[] low = new int[total]; // the pieces below a node are order[low] to order[high - 1]
    int[] high = new int[total];
    high[0] = count;
    int nodes = 1;
    int size = 0;
    int depth = 0;
    for (int node = 0, levelEnd = 1; node < nodes; node++) {
      if (node == levelEnd) {
        depth++;
        levelEnd = nodes;
      }
      firstChild[node] = nodes;
      int next = low[node];
      int last = -1;
      for (; next < high[node] && length(order[next]) == depth; next++) {
        last = Math.max(last, order[next]);
      }
      values[node] = last < 0 ? Trie.NONE : ids[last];
      size += last < 0 ? 0 : 1;
      while (next < high[node]) {
        int label = unit(order[next], depth);
        int end = next + 1;
        while (end < high[node] && unit(order[end], depth) == label) {
          end++;
        }
        labels[nodes] = (byte) label;
        low[nodes] = next;
        high[nodes++] = end;
        next = end;
      }
    }
    firstChild[nodes] = nodes;
    return new Trie(labels, firstChild, values, size);
  }

  /** The root, and what each piece does not share with the one before it. */
  private int countNodes(int[] order) {
    int nodes = 1;
    for (int i = 0; i < count; i++) {
      int shared = 0;
      while (i > 0
          && shared < length(order[i])
          && unit(order[i], shared) == unit(order[i - 1], shared)) {
        shared++;
      }
      nodes += length(order[i]) - shared;
    }
    return nodes;
  }

  private int start(int piece) {
    return piece == 0 ? 0 : ends[piece - 1];
  }

  private int length(int piece) {
    return ends[piece] - start(piece);
  }

  /** A byte of a piece, -1 behind its end. */
  private int unit(int piece, int index) {
    int position = start(piece) + index;
    return position < ends[piece] ? bytes[position] & 0xFF : -1;
  }

  /** Multikey quicksort (Bentley and Sedgewick, 1997) of order[low] to order[high - 1]. */
  private void sort(int[] order, int low, int high, int depth) {
    while (high - low > 1) {
      int pivot = unit(order[(low + high) >>> 1], depth);
      int less = low;
      int more = high;
      for (int i = low; i < more; ) {
        int unit = unit(order[i], depth);
        if (unit < pivot) {
          swap(order, less++, i++);
        } else if (unit > pivot) {
          swap(order, i, --more);
        } else {
          i++;
        }
      }
      sort(order, low, less, depth);
      sort(order, more, high, depth);
      if (pivot < 0) {
        return;
      }
      low = less;
      high = more;
      depth++;
    }
  }

  private static void swap(int[] order, int a, int b) {
    int held = order[a];
    order[a] = order[b];
    order[b] = held;
  }
}
