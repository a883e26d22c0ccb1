package dev.edgebert.core.text;

import java.util.Arrays;

/** A word under byte pair encoding: a linked list of symbols, and a heap of possible merges. */
final class Symbols {

  private final PairTable merges;
  private final int[] ids;
  private final int[] lengths;
  private final int[] previous;
  private final int[] next;
  private int count;

  /** Rank, then position, in one number each; a binary heap with the least first. */
  private long[] heap;

  private int heapSize;

  Symbols(PairTable merges, int capacity) {
    this.merges = merges;
    ids = new int[capacity];
    lengths = new int[capacity];
    previous = new int[capacity];
    next = new int[capacity];
    heap = new long[capacity + 2];
  }

  void add(int id, int length) {
    ids[count] = id;
    lengths[count] = length;
    previous[count] = count - 1;
    next[count] = -1;
    if (count > 0) {
      next[count - 1] = count;
    }
    count++;
  }

  /** The first symbol, or -1. */
  int first() {
    return count == 0 ? -1 : 0;
  }

  /** The symbol after one, or -1. */
  int next(int symbol) {
    return next[symbol];
  }

  int id(int symbol) {
    return ids[symbol];
  }

  int length(int symbol) {
    return lengths[symbol];
  }

  void merge() {
    for (int i = 0; i + 1 < count; i++) {
      offer(i);
    }
    while (heapSize > 0) {
      long top = pop();
      int left = (int) top;
      if (lengths[left] == 0 || next[left] < 0) {
        continue; // merged into another one since
      }
      int right = next[left];
      int rank = merges.rank(ids[left], ids[right]);
      int merged = merges.merged((int) (top >>> 32));
      if (rank < 0 || merges.merged(rank) != merged) {
        continue; // one of the two has changed since
      }
      ids[left] = merged;
      lengths[left] += lengths[right];
      lengths[right] = 0;
      next[left] = next[right];
      if (next[left] >= 0) {
        previous[next[left]] = left;
        offer(left);
      }
      if (previous[left] >= 0) {
        offer(previous[left]);
      }
    }
  }

  private void offer(int left) {
    int rank = merges.rank(ids[left], ids[next[left]]);
    if (rank < 0) {
      return;
    }
    if (heapSize == heap.length) {
      heap = Arrays.copyOf(heap, 2 * heapSize);
    }
    long entry = (long) rank << 32 | left;
    int child = heapSize++;
    while (child > 0 && heap[(child - 1) / 2] > entry) {
      heap[child] = heap[(child - 1) / 2];
      child = (child - 1) / 2;
    }
    heap[child] = entry;
  }

  private long pop() {
    final long top = heap[0];
    long last = heap[--heapSize];
    int parent = 0;
    while (true) {
      int child = 2 * parent + 1;
      if (child + 1 < heapSize && heap[child + 1] < heap[child]) {
        child++;
      }
      if (child >= heapSize || heap[child] >= last) {
        break;
      }
      heap[parent] = heap[child];
      parent = child;
    }
    heap[parent] = last;
    return top;
  }
}
