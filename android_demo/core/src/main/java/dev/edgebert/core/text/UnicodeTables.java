package dev.edgebert.core.text;

import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * What the tokenizers know of Unicode.
 *
 * <p>Neither {@link Character} nor {@link java.text.Normalizer} is asked: their Unicode is that of
 * the phone's release (8 on Android 7, 15 on Android 14), and models were trained with the versions
 * that Hugging Face's tokenizers are built with, 9 for normal forms and categories and newer ones
 * for letters and lower case. The tables are theirs, so the same text gives the same tokens on
 * every phone.
 */
final class UnicodeTables {

  private static int[] numbers = numbers();
  private static int position;

  /** What BERT's cleaning removes: U+0000, U+FFFD, Cc, Cf and Co, but for tab and line ends. */
  static final CodePointSet CONTROL = set();

  /** What BERT's pre-tokenizer splits off: P*, and the symbols of ASCII. */
  static final CodePointSet PUNCTUATION = set();

  /** Mn: what BERT strips as accents. */
  static final CodePointSet NONSPACING_MARK = set();

  /** M*: what the normalizer StripAccents strips. */
  static final CodePointSet COMBINING_MARK = set();

  /** L*, the regular expression {@code \p{L}}. */
  static final CodePointSet LETTER = set();

  /** N*, the regular expression {@code \p{N}}. */
  static final CodePointSet NUMBER = set();

  /** The regular expression {@code \w}. */
  static final CodePointSet WORD = set();

  /** Grapheme_Cluster_Break of UAX 29: Control (with CR and LF). */
  static final CodePointSet BREAK_CONTROL = set();

  static final CodePointSet BREAK_EXTEND = set();
  static final CodePointSet BREAK_PREPEND = set();
  static final CodePointSet BREAK_SPACING_MARK = set();
  static final CodePointSet BREAK_L = set();
  static final CodePointSet BREAK_V = set();
  static final CodePointSet BREAK_T = set();
  static final CodePointSet PICTOGRAPHIC = set();

  /** Indic_Conjunct_Break of UAX 44. */
  static final CodePointSet CONJUNCT_CONSONANT = set();

  static final CodePointSet CONJUNCT_LINKER = set();
  static final CodePointSet CONJUNCT_EXTEND = set();

  /** Full lower case of a single character, no locale and no context. */
  static final CodePointMap LOWERCASE = map();

  /** Canonical_Combining_Class where it is not 0. */
  static final CodePointMap COMBINING_CLASS = map();

  /** Full canonical decompositions, but for Hangul syllables. */
  static final CodePointMap CANONICAL = map();

  /** Full compatibility decompositions where they differ from the canonical ones. */
  static final CodePointMap COMPATIBLE = map();

  /** Primary composites and the two characters of which each is composed. */
  static final CodePointMap COMPOSED = map();

  static {
    numbers = null; // no longer needed
  }

  private UnicodeTables() {}

  /** White_Space: the regular expression {@code \s}, and Rust's {@code char::is_whitespace}. */
  static boolean isWhitespace(int c) {
    if (c < 128) {
      return c == ' ' || c >= '\t' && c <= '\r';
    }
    return c == 0x85
        || c == 0xA0
        || c == 0x1680
        || c >= 0x2000 && c <= 0x200A
        || c == 0x2028
        || c == 0x2029
        || c == 0x202F
        || c == 0x205F
        || c == 0x3000;
  }

  private static CodePointSet set() {
    int count = next();
    int[] firsts = new int[count];
    int[] lasts = new int[count];
    int end = 0;
    for (int i = 0; i < count; i++) {
      firsts[i] = end + next();
      lasts[i] = firsts[i] + next();
      end = lasts[i] + 1;
    }
    return new CodePointSet(firsts, lasts);
  }

  private static CodePointMap map() {
    int count = next();
    int[] keys = new int[count];
    int[][] values = new int[count][];
    int key = 0;
    for (int i = 0; i < count; i++) {
      key += next();
      keys[i] = key;
      values[i] = new int[next()];
      int before = key;
      for (int j = 0; j < values[i].length; j++) {
        int zigzag = next();
        before += zigzag >>> 1 ^ -(zigzag & 1);
        values[i][j] = before;
      }
    }
    return new CodePointMap(keys, values);
  }

  private static int next() {
    return numbers[position++];
  }

  private static int[] numbers() {
    Inflater inflater = new Inflater();
    try {
      inflater.setInput(Base64.decode(UnicodeData.TABLES));
      int[] out = new int[1 << 16];
      byte[] buffer = new byte[4096];
      int count = 0;
      int shift = 0;
      while (!inflater.finished()) {
        int length = inflater.inflate(buffer);
        for (int i = 0; i < length; i++) {
          out[count] |= (buffer[i] & 127) << shift;
          shift = buffer[i] < 0 ? shift + 7 : 0;
          count += shift == 0 ? 1 : 0;
        }
      }
      return out;
    } catch (DataFormatException e) {
      throw new IllegalStateException(e);
    } finally {
      inflater.end();
    }
  }
}
