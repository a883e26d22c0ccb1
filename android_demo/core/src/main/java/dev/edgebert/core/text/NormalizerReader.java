package dev.edgebert.core.text;

import java.util.ArrayList;
import java.util.List;

/** Reads the field normalizer of a tokenizer.json. */
final class NormalizerReader {

  private NormalizerReader() {}

  /** The normalizer that parsed JSON stands for; null stands for none. */
  static Normalizer read(Object value) throws TokenizerException {
    if (value == null) {
      return text -> text;
    }
    Fields fields = new Fields("normalizer", value);
    switch (fields.type()) {
      case "Sequence":
        List<Normalizer> steps = new ArrayList<>();
        for (Object step : fields.list("normalizers")) {
          steps.add(read(step));
        }
        return Normalizers.sequence(steps);
      case "BertNormalizer":
        boolean lowercase = fields.flag("lowercase", true);
        return new BertNormalizer(
            fields.flag("clean_text", true),
            fields.flag("handle_chinese_chars", true),
            fields.flag("strip_accents", lowercase),
            lowercase);
      case "NFC":
      case "NFD":
      case "NFKC":
      case "NFKD":
        return NormalForm.valueOf(fields.type());
      case "Lowercase":
        return Normalizers::lowercase;
      case "StripAccents":
        return text -> Normalizers.remove(text, UnicodeTables.COMBINING_MARK);
      case "Strip":
        return Normalizers.strip(fields.flag("strip_left", true), fields.flag("strip_right", true));
      case "Prepend":
        return Normalizers.prepend(fields.text("prepend"));
      case "Nmt":
        return Normalizers::nmt;
      case "Replace":
        return replacement(fields);
      case "Precompiled":
        return precompiled(fields);
      default:
        throw fields.unsupported(fields.type());
    }
  }

  private static Normalizer replacement(Fields fields) throws TokenizerException {
    String content = fields.text("content");
    Fields pattern = fields.fields("pattern");
    if (pattern.has("String")) {
      if (pattern.text("String").isEmpty()) {
        throw fields.unsupported("Replace of an empty text");
      }
      return Replacement.ofString(pattern.text("String"), content);
    }
    // The only regular expression in the files of the supported models is " {2,}".
    String regex = pattern.text("Regex");
    int digits = regex.length() - 4;
    boolean run = digits > 0 && regex.startsWith(" {") && regex.endsWith(",}");
    String least = run ? regex.substring(2, 2 + digits) : "";
    if (!least.matches("[1-9][0-9]{0,3}")) {
      throw fields.unsupported("Replace of the regular expression '" + regex + "'");
    }
    return Replacement.ofRuns(' ', Integer.parseInt(least), content);
  }

  private static Normalizer precompiled(Fields fields) throws TokenizerException {
    if (!fields.has("precompiled_charsmap")) {
      throw new TokenizerException("normalizer Precompiled: there is no precompiled_charsmap");
    }
    try {
      return new Precompiled(Base64.decode(fields.text("precompiled_charsmap")));
    } catch (IllegalArgumentException e) {
      throw new TokenizerException("normalizer Precompiled: " + e.getMessage(), e);
    }
  }
}
