package dev.edgebert.core.text;

import java.util.Arrays;

/** The merges of a BPE model: a hash table from pairs of ids to ranks, and what they give. */
final class PairTable {

  static final int NONE = -1;

  private final long[] keys;
  private final int[] ranks;
  private final int[] merged;
  private final int mask;

  /** Makes room for merges with ranks below a number. */
  PairTable(int count) {
    int capacity = Integer.highestOneBit(Math.max(8, count)) * 4;
    keys = new long[capacity];
    ranks = new int[capacity];
    merged = new int[count];
    mask = capacity - 1;
    Arrays.fill(ranks, NONE);
  }

  /** Sets the rank of a pair and the id that merging it gives. */
  void put(int left, int right, int rank, int id) {
    int slot = slot(left, right);
    keys[slot] = key(left, right);
    ranks[slot] = rank;
    merged[rank] = id;
  }

  /** The rank of a pair, or {@link #NONE}. */
  int rank(int left, int right) {
    return ranks[slot(left, right)];
  }

  /** The id that the merge of a rank gives. */
  int merged(int rank) {
    return merged[rank];
  }

  private static long key(int left, int right) {
    return (long) left << 32 | right;
  }

  private int slot(int left, int right) {
    long key = key(left, right);
    int slot = (int) (key * 0x9E3779B97F4A7C15L >>> 32) & mask;
    while (ranks[slot] >= 0 && keys[slot] != key) {
      slot = slot + 1 & mask;
    }
    return slot;
  }
}
