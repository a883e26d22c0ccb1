package dev.edgebert.core.text;

/**
 * What BERT does to a text: cleaning, spaces around Chinese characters, accents stripped, lower
 * case; see {@code BasicTokenizer} in google-research/bert.
 */
final class BertNormalizer implements Normalizer {

  private final boolean cleanText;
  private final boolean chineseCharacters;
  private final boolean stripAccents;
  private final boolean lowercase;

  BertNormalizer(
      boolean cleanText, boolean chineseCharacters, boolean stripAccents, boolean lowercase) {
    this.cleanText = cleanText;
    this.chineseCharacters = chineseCharacters;
    this.stripAccents = stripAccents;
    this.lowercase = lowercase;
  }

  @Override
  public NormalizedText normalize(NormalizedText text) {
    if (cleanText || chineseCharacters) {
      text = cleanAndSpace(text);
    }
    if (stripAccents) {
      NormalizedText decomposed = NormalForm.NFD.normalize(text);
      text = Normalizers.remove(decomposed, UnicodeTables.NONSPACING_MARK);
    }
    return lowercase ? Normalizers.lowercase(text) : text;
  }

  private NormalizedText cleanAndSpace(NormalizedText text) {
    TextBuilder out = new TextBuilder(text.length() + 16);
    for (int i = 0; i < text.length(); i++) {
      int c = text.at(i);
      if (cleanText && UnicodeTables.CONTROL.contains(c)) {
        continue;
      }
      if (cleanText && UnicodeTables.isWhitespace(c)) {
        c = ' ';
      }
      boolean spaced = chineseCharacters && isChinese(c);
      if (spaced) {
        out.replace(text, i, ' ');
      }
      out.replace(text, i, c);
      if (spaced) {
        out.replace(text, i, ' ');
      }
    }
    return out.build();
  }

  /** The CJK ideographs; extension E starts at U+2B920, as it does (by a slip) in the crate. */
  private static boolean isChinese(int c) {
    return c >= 0x3400
        && (c <= 0x4DBF
            || c >= 0x4E00 && c <= 0x9FFF
            || c >= 0xF900 && c <= 0xFAFF
            || c >= 0x20000 && c <= 0x2A6DF
            || c >= 0x2A700 && c <= 0x2B73F
            || c >= 0x2B740 && c <= 0x2B81F
            || c >= 0x2B920 && c <= 0x2CEAF
            || c >= 0x2F800 && c <= 0x2FA1F);
  }
}
