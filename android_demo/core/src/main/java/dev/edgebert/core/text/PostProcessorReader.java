package dev.edgebert.core.text;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Reads the field post_processor of a tokenizer.json. */
final class PostProcessorReader {

  private PostProcessorReader() {}

  /** The post-processor that parsed JSON stands for; null stands for none. */
  static PostProcessor read(Object value) throws TokenizerException {
    if (value == null) {
      return sequence(new ArrayList<>());
    }
    Fields fields = new Fields("post_processor", value);
    switch (fields.type()) {
      case "Sequence":
        List<PostProcessor> steps = new ArrayList<>();
        for (Object step : fields.list("processors")) {
          steps.add(read(step));
        }
        return sequence(steps);
      case "TemplateProcessing":
        return new Template(template(fields, "single"), template(fields, "pair"));
      case "BertProcessing":
        return bert(fields);
      case "RobertaProcessing":
        PostProcessor roberta = roberta(fields);
        return fields.flag("trim_offsets", true)
            ? sequence(Arrays.asList(trimmer(fields), roberta))
            : roberta;
      case "ByteLevel":
        return fields.flag("trim_offsets", true) ? trimmer(fields) : sequence(new ArrayList<>());
      default:
        throw fields.unsupported(fields.type());
    }
  }

  private static PostProcessor sequence(List<PostProcessor> steps) {
    return new PostProcessor() {
      @Override
      public int added(boolean pair) {
        int count = 0;
        for (PostProcessor step : steps) {
          count += step.added(pair);
        }
        return count;
      }

      @Override
      public List<TokenList> process(List<TokenList> sequences) {
        for (PostProcessor step : steps) {
          sequences = step.process(sequences);
        }
        return sequences;
      }
    };
  }

  private static PostProcessor trimmer(Fields fields) throws TokenizerException {
    return new OffsetTrimmer(fields.flag("add_prefix_space", true));
  }

  /** [CLS] A [SEP] B [SEP]. */
  private static Template bert(Fields fields) throws TokenizerException {
    int cls = id(fields, "cls");
    int sep = id(fields, "sep");
    Template.Part start = Template.Part.special(0, cls);
    Template.Part first = Template.Part.sequence(0, 0);
    Template.Part middle = Template.Part.special(0, sep);
    return new Template(
        Arrays.asList(start, first, middle),
        Arrays.asList(
            start, first, middle, Template.Part.sequence(1, 1), Template.Part.special(1, sep)));
  }

  /** {@code <s> A </s></s> B </s>}, all of type 0. */
  private static Template roberta(Fields fields) throws TokenizerException {
    int cls = id(fields, "cls");
    int sep = id(fields, "sep");
    Template.Part start = Template.Part.special(0, cls);
    Template.Part first = Template.Part.sequence(0, 0);
    Template.Part end = Template.Part.special(0, sep);
    return new Template(
        Arrays.asList(start, first, end),
        Arrays.asList(start, first, end, end, Template.Part.sequence(1, 0), end));
  }

  private static int id(Fields fields, String name) throws TokenizerException {
    List<?> pair = fields.list(name);
    return fields.toInt(pair.size() == 2 ? pair.get(1) : null);
  }

  private static List<Template.Part> template(Fields fields, String name)
      throws TokenizerException {
    Fields specials = fields.fields("special_tokens");
    List<Template.Part> parts = new ArrayList<>();
    for (Object piece : fields.list(name)) {
      Fields either = new Fields("post_processor TemplateProcessing", piece);
      boolean special = either.has("SpecialToken");
      Fields one = either.fields(special ? "SpecialToken" : "Sequence");
      int typeId = one.number("type_id", 0);
      if (special) {
        List<?> ids = specials.fields(one.text("id")).list("ids");
        int[] numbers = new int[ids.size()];
        for (int i = 0; i < numbers.length; i++) {
          numbers[i] = fields.toInt(ids.get(i));
        }
        parts.add(Template.Part.special(typeId, numbers));
      } else {
        int sequence = one.text("id").equals("A") ? 0 : 1;
        if (sequence == 1 && name.equals("single")) {
          throw fields.unsupported("TemplateProcessing with a second text in the template single");
        }
        parts.add(Template.Part.sequence(sequence, typeId));
      }
    }
    return parts;
  }
}
