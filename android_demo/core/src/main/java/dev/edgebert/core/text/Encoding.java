package dev.edgebert.core.text;

import java.util.Arrays;

/** A text, or two, as token ids, with the place of each token in the text. */
public final class Encoding {

  /** Token ids. */
  public final int[] ids;

  /** Which sequence a token belongs to, as the model was taught to see it. */
  public final int[] typeIds;

  /** 1 for every token: padding is the caller's. */
  public final int[] attentionMask;

  /**
   * Where each token starts in its own text, in Unicode code points, as in Hugging Face's
   * tokenizers; 0 for special tokens.
   */
  public final int[] starts;

  /** Where each token ends, exclusive; 0 for special tokens. */
  public final int[] ends;

  Encoding(TokenList tokens) {
    ids = Arrays.copyOf(tokens.ids, tokens.length);
    typeIds = Arrays.copyOf(tokens.typeIds, tokens.length);
    starts = Arrays.copyOf(tokens.starts, tokens.length);
    ends = Arrays.copyOf(tokens.ends, tokens.length);
    attentionMask = new int[tokens.length];
    Arrays.fill(attentionMask, 1);
  }

  /** The number of tokens. */
  public int length() {
    return ids.length;
  }

  /**
   * Offsets as Java's strings count: in UTF-16 units.
   *
   * @param offsets {@link #starts} or {@link #ends}
   * @param text the text that they belong to
   */
  public static int[] toUtf16(int[] offsets, String text) {
    int[] units = new int[text.codePointCount(0, text.length()) + 1];
    for (int i = 1; i < units.length; i++) {
      units[i] = units[i - 1] + Character.charCount(text.codePointAt(units[i - 1]));
    }
    int[] converted = new int[offsets.length];
    for (int i = 0; i < offsets.length; i++) {
      converted[i] = units[Math.min(offsets[i], units.length - 1)];
    }
    return converted;
  }
}
