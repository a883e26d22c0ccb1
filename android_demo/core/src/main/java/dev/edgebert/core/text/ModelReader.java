package dev.edgebert.core.text;

import dev.edgebert.core.json.Json;
import dev.edgebert.core.json.JsonReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Reads the field model of a tokenizer.json; the vocabulary goes straight into its trie. */
final class ModelReader {

  private final JsonReader reader;
  private final Map<String, Object> fields = new HashMap<>();
  private final TrieBuilder vocabulary = new TrieBuilder();
  private final List<String> merges = new ArrayList<>(); // left and right in turn
  private double[] scores = new double[0];

  ModelReader(JsonReader reader) {
    this.reader = reader;
  }

  Model read() throws IOException, TokenizerException {
    boolean list = false;
    reader.beginObject();
    while (reader.hasNext()) {
      String name = reader.nextName();
      if (name.equals("vocab")) {
        list = reader.peek() == JsonReader.Kind.ARRAY;
        if (list) {
          readScoredPieces();
        } else {
          readIds();
        }
      } else if (name.equals("merges")) {
        readMerges();
      } else {
        fields.put(name, Json.value(reader));
      }
    }
    reader.endObject();
    Fields model = new Fields("model", fields);
    String guess = list ? "Unigram" : merges.isEmpty() ? "WordPiece" : "BPE";
    String type = model.text("type", guess);
    if (list != type.equals("Unigram")) {
      throw model.unsupported(type + " with this form of vocabulary");
    }
    Trie trie = vocabulary.build();
    switch (type) {
      case "WordPiece":
        return wordPiece(model, trie);
      case "BPE":
        return bpe(model, trie);
      case "Unigram":
        return unigram(model, trie);
      default:
        throw model.unsupported(type);
    }
  }

  private static Model wordPiece(Fields model, Trie trie) throws TokenizerException {
    return new WordPiece(
        trie,
        known(trie, model.text("unk_token", "[UNK]")),
        model.text("continuing_subword_prefix", "##"),
        model.number("max_input_chars_per_word", 100));
  }

  private Model bpe(Fields model, Trie trie) throws TokenizerException {
    for (String affix : new String[] {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model.text(affix, "").isEmpty()) {
        throw model.unsupported("BPE with " + affix);
      }
    }
    boolean dropout = model.any("dropout") instanceof Number;
    if (dropout && ((Number) model.any("dropout")).doubleValue() != 0) {
      throw model.unsupported("BPE with dropout");
    }
    PairTable table = new PairTable(merges.size() / 2);
    for (int i = 0; i < merges.size(); i += 2) {
      String left = merges.get(i);
      String right = merges.get(i + 1);
      int merged = known(trie, left + right);
      table.put(known(trie, left), known(trie, right), i / 2, merged);
    }
    return new Bpe(
        trie,
        table,
        model.has("unk_token") ? known(trie, model.text("unk_token")) : Trie.NONE,
        model.flag("fuse_unk", false),
        model.flag("ignore_merges", false),
        model.flag("byte_fallback", false) ? byteIds(trie) : null);
  }

  private Model unigram(Fields model, Trie trie) throws TokenizerException {
    int unknown = model.number("unk_id", -1);
    if (unknown < 0 || unknown >= scores.length) {
      throw model.unsupported("Unigram without unk_id");
    }
    return new Unigram(
        trie, scores, unknown, model.flag("byte_fallback", false) ? byteIds(trie) : null);
  }

  private static int known(Trie trie, String token) throws TokenizerException {
    int id = trie.get(token);
    if (id < 0) {
      throw new TokenizerException("model: \"" + token + "\" is not in the vocabulary");
    }
    return id;
  }

  private static int[] byteIds(Trie trie) {
    int[] ids = new int[256];
    for (int b = 0; b < 256; b++) {
      String hex = Integer.toHexString(b | 0x100).substring(1);
      ids[b] = trie.get("<0x" + hex.toUpperCase(java.util.Locale.ROOT) + ">");
    }
    return ids;
  }

  private void readIds() throws IOException {
    reader.beginObject();
    while (reader.hasNext()) {
      String token = reader.nextName();
      int id = reader.nextInt();
      if (id < 0) {
        throw reader.error("an id below 0");
      }
      vocabulary.add(token, id);
    }
    reader.endObject();
  }

  private void readScoredPieces() throws IOException {
    double[] found = new double[1 << 10];
    reader.beginArray();
    while (reader.hasNext()) {
      reader.beginArray();
      int id = vocabulary.count();
      if (id == found.length) {
        found = Arrays.copyOf(found, 2 * id);
      }
      next();
      vocabulary.add(reader.nextString(), id);
      next();
      found[id] = reader.nextDouble();
      end();
    }
    reader.endArray();
    scores = Arrays.copyOf(found, vocabulary.count());
  }

  private void readMerges() throws IOException {
    reader.beginArray();
    while (reader.hasNext()) {
      if (reader.peek() == JsonReader.Kind.ARRAY) {
        reader.beginArray();
        next();
        merges.add(reader.nextString());
        next();
        merges.add(reader.nextString());
        end();
      } else {
        String both = reader.nextString();
        int space = both.indexOf(' ');
        if (space < 0 || both.indexOf(' ', space + 1) >= 0) {
          throw reader.error("a merge of two tokens was expected");
        }
        merges.add(both.substring(0, space));
        merges.add(both.substring(space + 1));
      }
    }
    reader.endArray();
  }

  private void next() throws IOException {
    if (!reader.hasNext()) {
      throw reader.error("a pair was expected");
    }
  }

  private void end() throws IOException {
    if (reader.hasNext()) {
      throw reader.error("a pair was expected");
    }
    reader.endArray();
  }
}
