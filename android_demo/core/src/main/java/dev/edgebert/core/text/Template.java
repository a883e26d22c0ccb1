package dev.edgebert.core.text;

import java.util.ArrayList;
import java.util.List;

/** Puts special tokens around one sequence, or around and between two. */
final class Template implements PostProcessor {

  /** A special token, which may be several ids, or the first or the second sequence. */
  static final class Part {

    final int[] ids;
    final int sequence;
    final int typeId;

    private Part(int[] ids, int sequence, int typeId) {
      this.ids = ids;
      this.sequence = sequence;
      this.typeId = typeId;
    }

    static Part special(int typeId, int... ids) {
      return new Part(ids, -1, typeId);
    }

    static Part sequence(int index, int typeId) {
      return new Part(new int[0], index, typeId);
    }
  }

  private final List<Part> single;
  private final List<Part> pair;

  Template(List<Part> single, List<Part> pair) {
    this.single = single;
    this.pair = pair;
  }

  @Override
  public int added(boolean isPair) {
    int count = 0;
    for (Part part : isPair ? pair : single) {
      count += part.ids.length;
    }
    return count;
  }

  @Override
  public List<TokenList> process(List<TokenList> sequences) {
    List<TokenList> out = new ArrayList<>();
    for (Part part : sequences.size() == 2 ? pair : single) {
      TokenList tokens;
      if (part.sequence >= 0) {
        tokens = sequences.get(part.sequence);
      } else {
        tokens = new TokenList(part.ids.length);
        for (int id : part.ids) {
          tokens.add(id, 0, 0);
        }
      }
      tokens.setTypes(part.typeId);
      out.add(tokens);
    }
    return out;
  }
}
