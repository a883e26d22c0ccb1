package dev.edgebert.core.text;

import java.util.List;
import java.util.Map;

/** The fields of one component of a tokenizer.json, with errors that name it. */
final class Fields {

  private final String kind;
  private final Map<?, ?> values;

  /** Takes what {@link dev.edgebert.core.json.Json} made of an object. */
  Fields(String kind, Object value) throws TokenizerException {
    if (!(value instanceof Map)) {
      throw new TokenizerException(kind + ": an object was expected");
    }
    this.kind = kind;
    this.values = (Map<?, ?>) value;
  }

  boolean has(String name) {
    return values.get(name) != null;
  }

  Object any(String name) {
    return values.get(name);
  }

  String type() throws TokenizerException {
    return text("type");
  }

  String text(String name) throws TokenizerException {
    if (values.get(name) instanceof String) {
      return (String) values.get(name);
    }
    throw damaged(name, "a text");
  }

  String text(String name, String otherwise) throws TokenizerException {
    return has(name) ? text(name) : otherwise;
  }

  boolean flag(String name, boolean otherwise) throws TokenizerException {
    if (!has(name)) {
      return otherwise;
    } else if (values.get(name) instanceof Boolean) {
      return (Boolean) values.get(name);
    }
    throw damaged(name, "true or false");
  }

  int number(String name, int otherwise) throws TokenizerException {
    if (!has(name)) {
      return otherwise;
    } else if (values.get(name) instanceof Long) {
      return toInt(values.get(name));
    }
    throw damaged(name, "a number");
  }

  List<?> list(String name) throws TokenizerException {
    if (values.get(name) instanceof List) {
      return (List<?>) values.get(name);
    }
    throw damaged(name, "a list");
  }

  Fields fields(String name) throws TokenizerException {
    return new Fields(kind + " " + name, values.get(name));
  }

  /** A single character, as a code point. */
  int character(String name) throws TokenizerException {
    String text = text(name);
    if (text.codePointCount(0, text.length()) != 1) {
      throw damaged(name, "one character");
    }
    return text.codePointAt(0);
  }

  /** An id: a number of 31 bits. */
  int toInt(Object number) throws TokenizerException {
    if (number instanceof Long && (Long) number >= 0 && (Long) number <= Integer.MAX_VALUE) {
      return ((Long) number).intValue();
    }
    throw new TokenizerException(kind + ": " + number + " is no id");
  }

  TokenizerException unsupported(String what) {
    return new TokenizerException(kind + " " + what + " is not supported");
  }

  private TokenizerException damaged(String name, String wanted) {
    return new TokenizerException(kind + ": " + wanted + " was expected as " + name);
  }
}
