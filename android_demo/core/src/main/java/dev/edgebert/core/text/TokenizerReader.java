package dev.edgebert.core.text;

import dev.edgebert.core.json.Json;
import dev.edgebert.core.json.JsonReader;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Reads tokenizer.json, version 1.0, whatever the order of its fields. */
final class TokenizerReader {

  private static final String[] PADS = {"[PAD]", "<pad>"};

  private final Map<String, Object> parts = new HashMap<>();
  private Model model;

  Tokenizer read(InputStream stream) throws TokenizerException {
    JsonReader reader = new JsonReader(stream);
    try {
      reader.beginObject();
      while (reader.hasNext()) {
        String name = reader.nextName();
        if (name.equals("model")) {
          model = new ModelReader(reader).read();
        } else {
          parts.put(name, Json.value(reader));
        }
      }
      reader.endObject();
      reader.endDocument();
    } catch (IOException e) {
      throw new TokenizerException("tokenizer.json cannot be read: " + e.getMessage(), e);
    }
    if (model == null) {
      throw new TokenizerException("tokenizer.json has no model");
    }
    return build();
  }

  private Tokenizer build() throws TokenizerException {
    Normalizer normalizer = NormalizerReader.read(parts.get("normalizer"));
    AddedTokens addedTokens = new AddedTokens(addedTokens(), model, normalizer);
    Object padding = parts.get("padding");
    int padId = 0;
    boolean padLeft = false;
    if (padding != null) {
      Fields fields = new Fields("padding", padding);
      padId = fields.number("pad_id", 0);
      padLeft = fields.text("direction", "Right").equals("Left");
    } else {
      for (String pad : PADS) {
        Integer added = addedTokens.id(pad);
        int id = added != null ? added : model.id(pad);
        padId = id >= 0 ? id : padId;
      }
    }
    return new Tokenizer(
        addedTokens,
        PreTokenizerReader.read(parts.get("pre_tokenizer")),
        model,
        PostProcessorReader.read(parts.get("post_processor")),
        truncation(),
        padId,
        padLeft);
  }

  private List<AddedToken> addedTokens() throws TokenizerException {
    List<AddedToken> tokens = new ArrayList<>();
    Object value = parts.get("added_tokens");
    if (value == null) {
      return tokens;
    }
    if (!(value instanceof List)) {
      throw new TokenizerException("added_tokens: a list was expected");
    }
    for (Object element : (List<?>) value) {
      Fields fields = new Fields("added_tokens", element);
      tokens.add(
          new AddedToken(
              fields.text("content"),
              fields.flag("single_word", false),
              fields.flag("lstrip", false),
              fields.flag("rstrip", false),
              fields.flag("normalized", true)));
    }
    return tokens;
  }

  private Truncation truncation() throws TokenizerException {
    Object value = parts.get("truncation");
    if (value == null) {
      return new Truncation(Truncation.Strategy.LONGEST_FIRST, false);
    }
    Fields fields = new Fields("truncation", value);
    boolean keepsLast = fields.text("direction", "Right").equals("Left");
    switch (fields.text("strategy")) {
      case "LongestFirst":
        return new Truncation(Truncation.Strategy.LONGEST_FIRST, keepsLast);
      case "OnlyFirst":
        return new Truncation(Truncation.Strategy.ONLY_FIRST, keepsLast);
      case "OnlySecond":
        return new Truncation(Truncation.Strategy.ONLY_SECOND, keepsLast);
      default:
        throw fields.unsupported("strategy " + fields.text("strategy"));
    }
  }
}
