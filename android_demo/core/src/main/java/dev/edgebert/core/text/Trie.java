package dev.edgebert.core.text;

/**
 * A vocabulary as a trie over UTF-8: 9 bytes a node, and no string of a piece is kept.
 *
 * <p>Nodes are numbered breadth first, so the children of a node stand side by side, ordered by
 * their byte, and end where those of the next node start.
 */
final class Trie {

  static final int ROOT = 0;
  static final int NONE = -1;

  private final byte[] labels;
  private final int[] firstChild;
  private final int[] values;
  private final int size;

  Trie(byte[] labels, int[] firstChild, int[] values, int size) {
    this.labels = labels;
    this.firstChild = firstChild;
    this.values = values;
    this.size = size;
  }

  /** The number of pieces. */
  int size() {
    return size;
  }

  /** The node that a character leads to, or {@link #NONE}. */
  int step(int node, int codePoint) {
    int length = Utf8.length(codePoint);
    for (int i = 0; i < length && node >= 0; i++) {
      node = child(node, Utf8.unit(codePoint, length, i));
    }
    return node;
  }

  /** The node that a string leads to, or {@link #NONE}. */
  int walk(int node, String text) {
    for (int i = 0; i < text.length() && node >= 0; ) {
      int c = text.codePointAt(i);
      node = step(node, c);
      i += Character.charCount(c);
    }
    return node;
  }

  /** The id of the piece that ends at a node, or {@link #NONE}. */
  int value(int node) {
    return values[node];
  }

  /** The id of a piece, or {@link #NONE}. */
  int get(String piece) {
    int node = walk(ROOT, piece);
    return node < 0 ? NONE : values[node];
  }

  private int child(int node, int label) {
    int low = firstChild[node];
    int high = firstChild[node + 1];
    while (low < high) {
      int middle = (low + high) >>> 1;
      if ((labels[middle] & 0xFF) < label) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < firstChild[node + 1] && (labels[low] & 0xFF) == label ? low : NONE;
  }
}
