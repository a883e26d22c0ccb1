package dev.edgebert.core.text;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Cuts added tokens out of a text: those that are matched as they stand before it is normalized,
 * the others after. Of tokens that start at one place the longest is taken.
 */
final class AddedTokens {

  private final Normalizer normalizer;
  private final Map<Integer, AddedToken> byId = new HashMap<>();
  private final Map<String, Integer> ids = new HashMap<>();
  private final Trie plain;
  private final Trie normalized;

  /** Takes the tokens in the order of the file; those that the model has keep its ids. */
  AddedTokens(List<AddedToken> tokens, Model model, Normalizer normalizer) {
    this.normalizer = normalizer;
    int next = model.size();
    for (AddedToken token : tokens) {
      if (token.content.isEmpty()) {
        continue;
      }
      Integer known = ids.get(token.content);
      int id = known != null ? known : model.id(token.content);
      if (id < 0) {
        id = next++;
      }
      ids.put(token.content, id);
      byId.put(id, token);
    }
    TrieBuilder plainTokens = new TrieBuilder();
    TrieBuilder normalizedTokens = new TrieBuilder();
    for (Map.Entry<Integer, AddedToken> entry : byId.entrySet()) {
      String content = entry.getValue().content;
      if (!entry.getValue().normalized) {
        plainTokens.add(content, entry.getKey());
      } else {
        int[] characters = normalizer.normalize(NormalizedText.of(content)).toArray();
        normalizedTokens.add(new String(characters, 0, characters.length), entry.getKey());
      }
    }
    plain = plainTokens.build();
    normalized = normalizedTokens.build();
  }

  /** The id of an added token, or null. */
  Integer id(String content) {
    return ids.get(content);
  }

  /** Receives the parts of a text in order. */
  interface Receiver {

    /** A normalized part without added tokens. */
    void text(NormalizedText part);

    /** An added token and what it stands for. */
    void token(int id, NormalizedText part);
  }

  /** Cuts a text, and normalizes what is not an added token. */
  void cut(NormalizedText text, Receiver receiver) {
    Receiver second =
        new Receiver() {
          @Override
          public void text(NormalizedText part) {
            cut(normalizer.normalize(part), normalized, receiver);
          }

          @Override
          public void token(int id, NormalizedText part) {
            receiver.token(id, part);
          }
        };
    cut(text, plain, second);
  }

  private void cut(NormalizedText text, Trie tokens, Receiver receiver) {
    int done = 0;
    int index = 0;
    while (index < text.length() && tokens.size() > 0) {
      int end = index;
      int id = Trie.NONE;
      int node = Trie.ROOT;
      for (int i = index; i < text.length(); i++) {
        node = tokens.step(node, text.at(i));
        if (node < 0) {
          break;
        }
        if (tokens.value(node) >= 0) {
          id = tokens.value(node);
          end = i + 1;
        }
      }
      if (id < 0) {
        index++;
        continue;
      }
      AddedToken token = byId.get(id);
      if (!token.singleWord || isSingleWord(text, index, end)) {
        int start = token.stripsLeft ? Math.max(done, spaceStart(text, index)) : index;
        int stop = token.stripsRight ? spaceEnd(text, end) : end;
        if (done < start) {
          receiver.text(text.slice(done, start));
        }
        receiver.token(id, text.slice(start, stop));
        done = stop;
      }
      index = end;
    }
    if (done < text.length()) {
      receiver.text(text.slice(done, text.length()));
    }
  }

  private static boolean isSingleWord(NormalizedText text, int start, int end) {
    boolean left = start > 0 && UnicodeTables.WORD.contains(text.at(start - 1));
    boolean right = end < text.length() && UnicodeTables.WORD.contains(text.at(end));
    return !left && !right;
  }

  private static int spaceStart(NormalizedText text, int index) {
    while (index > 0 && UnicodeTables.isWhitespace(text.at(index - 1))) {
      index--;
    }
    return index;
  }

  private static int spaceEnd(NormalizedText text, int index) {
    while (index < text.length() && UnicodeTables.isWhitespace(text.at(index))) {
      index++;
    }
    return index;
  }
}
