package dev.edgebert.core.text;

import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * Turns text into token ids as Hugging Face's tokenizers do, from the same {@code tokenizer.json}.
 *
 * <p>Ids and offsets are those of the package {@code tokenizers}, for every text, locale and
 * Android release. A tokenizer can be used by several threads at once.
 */
public final class Tokenizer {

  /** The number of tokens to pass for a text that is not to be cut. */
  public static final int NO_LIMIT = Integer.MAX_VALUE;

  private final AddedTokens addedTokens;
  private final PreTokenizer preTokenizer;
  private final Model model;
  private final PostProcessor postProcessor;
  private final Truncation truncation;
  private final int padId;
  private final boolean padLeft;

  Tokenizer(
      AddedTokens addedTokens,
      PreTokenizer preTokenizer,
      Model model,
      PostProcessor postProcessor,
      Truncation truncation,
      int padId,
      boolean padLeft) {
    this.addedTokens = addedTokens;
    this.preTokenizer = preTokenizer;
    this.model = model;
    this.postProcessor = postProcessor;
    this.truncation = truncation;
    this.padId = padId;
    this.padLeft = padLeft;
  }

  /**
   * Reads a {@code tokenizer.json}; does not close the stream.
   *
   * @throws TokenizerException where the file is damaged, or has a part that is not supported,
   *     which the message names
   */
  public static Tokenizer load(InputStream tokenizerJson) throws TokenizerException {
    return new TokenizerReader().read(tokenizerJson);
  }

  /**
   * Encodes a text, or two, with special tokens and without padding.
   *
   * @param pair the second text, or null
   * @param maxTokens the largest number of tokens, special ones included; longer texts are cut as
   *     the file says, by default at the end of the longer one
   * @throws IllegalArgumentException where maxTokens is less than the number of special tokens
   */
  public Encoding encode(String text, String pair, int maxTokens) {
    int room = maxTokens - postProcessor.added(pair != null);
    if (room < 0) {
      throw new IllegalArgumentException(maxTokens + " tokens are less than the special ones");
    }
    TokenList first = sequence(text, 0);
    TokenList second = pair == null ? null : sequence(pair, 1);
    truncation.apply(first, second, room);
    List<TokenList> sequences = new ArrayList<>();
    sequences.add(first);
    if (second != null) {
      sequences.add(second);
    }
    TokenList all = new TokenList(first.length + 8);
    for (TokenList part : postProcessor.process(sequences)) {
      all.append(part);
    }
    return new Encoding(all);
  }

  /** The id of the token that rows are padded with. */
  public int padId() {
    return padId;
  }

  /** Whether padding goes before the text: only where the file asks for it. */
  public boolean padLeft() {
    return padLeft;
  }

  /** The id of a token, or -1. */
  public int tokenId(String token) {
    Integer added = addedTokens.id(token);
    return added != null ? added : model.id(token);
  }

  private TokenList sequence(String text, int typeId) {
    TokenList tokens = new TokenList(64);
    List<NormalizedText> pieces = new ArrayList<>();
    addedTokens.cut(
        NormalizedText.of(text),
        new AddedTokens.Receiver() {
          @Override
          public void text(NormalizedText part) {
            if (part.length() == 0) {
              return;
            }
            pieces.clear();
            preTokenizer.split(part, pieces);
            for (NormalizedText piece : pieces) {
              if (piece.length() > 0) {
                model.tokenize(piece, tokens);
              }
            }
          }

          @Override
          public void token(int id, NormalizedText part) {
            tokens.add(id, part, 0, part.length());
          }
        });
    tokens.setTypes(typeId);
    return tokens;
  }
}
