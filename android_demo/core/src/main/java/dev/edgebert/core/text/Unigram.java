package dev.edgebert.core.text;

import java.util.Arrays;

/**
 * The most probable segmentation under a unigram model (Viterbi). Kudo, Subword Regularization,
 * arXiv:1804.10959; ties and unknown characters as in {@code encode_optimized} of SentencePiece.
 */
final class Unigram implements Model {

  private static final double UNKNOWN_PENALTY = 10;

  private final Trie vocabulary;
  private final double[] scores;
  private final int unknown;
  private final double unknownScore;
  private final int[] byteIds;

  /**
   * Takes the pieces with their log probabilities, the id of the unknown one, and the id of each
   * byte's piece, or null where bytes do not stand in for unknown characters.
   */
  Unigram(Trie vocabulary, double[] scores, int unknown, int[] byteIds) {
    this.vocabulary = vocabulary;
    this.scores = scores;
    this.unknown = unknown;
    this.byteIds = byteIds;
    double lowest = Double.POSITIVE_INFINITY;
    for (double score : scores) {
      lowest = Math.min(lowest, score);
    }
    this.unknownScore = lowest - UNKNOWN_PENALTY;
  }

  @Override
  public void tokenize(NormalizedText piece, TokenList out) {
    int length = piece.length();
    double[] best = new double[length + 1];
    int[] from = new int[length + 1];
    int[] ids = new int[length + 1];
    Arrays.fill(from, -1);
    for (int start = 0; start < length; start++) {
      boolean single = false;
      int node = Trie.ROOT;
      for (int end = start + 1; end <= length; end++) {
        node = vocabulary.step(node, piece.at(end - 1));
        if (node < 0) {
          break;
        }
        int id = vocabulary.value(node);
        if (id >= 0) {
          single |= end == start + 1;
          offer(best, from, ids, start, end, id, scores[id]);
        }
      }
      if (!single) {
        offer(best, from, ids, start, start + 1, unknown, unknownScore);
      }
    }
    collect(piece, from, ids, out);
  }

  private static void offer(
      double[] best, int[] from, int[] ids, int start, int end, int id, double score) {
    double candidate = score + best[start];
    if (from[end] < 0 || candidate > best[end]) {
      best[end] = candidate;
      from[end] = start;
      ids[end] = id;
    }
  }

  /** Follows the best path; neighbors that are unknown become one token. */
  private void collect(NormalizedText piece, int[] from, int[] ids, TokenList out) {
    int[] ends = new int[piece.length()];
    int count = 0;
    for (int end = piece.length(); end > 0; end = from[end]) {
      ends[count++] = end;
    }
    int start = 0;
    for (int i = count - 1; i >= 0; i--) {
      int end = ends[i];
      if (ids[end] != unknown) {
        out.add(ids[end], piece, start, end);
      } else if (i > 0 && ids[ends[i - 1]] == unknown) {
        continue;
      } else {
        addUnknown(piece, start, end, out);
      }
      start = end;
    }
  }

  private void addUnknown(NormalizedText piece, int start, int end, TokenList out) {
    int node = Trie.ROOT;
    for (int i = start; i < end && node >= 0; i++) {
      node = vocabulary.step(node, piece.at(i));
    }
    if (node >= 0 && vocabulary.value(node) >= 0) {
      out.add(vocabulary.value(node), piece, start, end);
    } else if (byteIds == null || !Utf8.covers(byteIds, piece, start, end)) {
      out.add(unknown, piece, start, end);
    } else {
      for (int i = start; i < end; i++) {
        int size = Utf8.length(piece.at(i));
        for (int j = 0; j < size; j++) {
          int id = byteIds[Utf8.unit(piece.at(i), size, j)];
          out.add(id, piece.start(start), piece.end(end - 1));
        }
      }
    }
  }

  @Override
  public int id(String token) {
    return vocabulary.get(token);
  }

  @Override
  public int size() {
    return scores.length;
  }
}
