package dev.edgebert.core.text;

import java.util.ArrayList;
import java.util.List;

/** Reads the field pre_tokenizer of a tokenizer.json. */
final class PreTokenizerReader {

  private PreTokenizerReader() {}

  /** The pre-tokenizer that parsed JSON stands for; null stands for none. */
  static PreTokenizer read(Object value) throws TokenizerException {
    if (value == null) {
      return (text, out) -> out.add(text);
    }
    Fields fields = new Fields("pre_tokenizer", value);
    switch (fields.type()) {
      case "Sequence":
        List<PreTokenizer> steps = new ArrayList<>();
        for (Object step : fields.list("pretokenizers")) {
          steps.add(read(step));
        }
        return PreTokenizers.sequence(steps);
      case "BertPreTokenizer":
        return PreTokenizers::bert;
      case "WhitespaceSplit":
        return PreTokenizers::whitespaceSplit;
      case "Whitespace":
        return PreTokenizers::whitespace;
      case "ByteLevel":
        return new ByteLevel(fields.flag("add_prefix_space", true), fields.flag("use_regex", true));
      case "Metaspace":
        return metaspace(fields);
      default:
        throw fields.unsupported(fields.type());
    }
  }

  private static PreTokenizer metaspace(Fields fields) throws TokenizerException {
    Metaspace.Prepend prepend;
    switch (fields.text("prepend_scheme", "always")) {
      case "always":
        prepend = Metaspace.Prepend.ALWAYS;
        break;
      case "first":
        prepend = Metaspace.Prepend.FIRST;
        break;
      case "never":
        prepend = Metaspace.Prepend.NEVER;
        break;
      default:
        throw fields.unsupported("Metaspace prepend_scheme " + fields.text("prepend_scheme"));
    }
    if (!fields.flag("add_prefix_space", true) && prepend != Metaspace.Prepend.NEVER) {
      throw fields.unsupported("Metaspace whose add_prefix_space contradicts prepend_scheme");
    }
    return new Metaspace(fields.character("replacement"), prepend, fields.flag("split", true));
  }
}
