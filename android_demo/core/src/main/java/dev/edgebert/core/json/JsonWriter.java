package dev.edgebert.core.json;

import java.io.IOException;
import java.util.Map;

/**
 * Writes JSON (RFC 8259), indented by two spaces, to a {@link StringBuilder}, a {@link
 * java.io.Writer} or any other {@link Appendable}.
 *
 * <p>The methods return this writer, so that calls can be chained: {@code
 * writer.beginObject().name("p50").value(1.5).endObject()}.
 */
public final class JsonWriter {

  private final Appendable out;
  private final boolean[] isObject = new boolean[128];
  private final boolean[] isEmpty = new boolean[128];
  private int depth;
  private boolean afterName;

  public JsonWriter(Appendable out) {
    this.out = out;
  }

  public JsonWriter beginObject() throws IOException {
    return begin('{', true);
  }

  public JsonWriter endObject() throws IOException {
    return end('}', true);
  }

  public JsonWriter beginArray() throws IOException {
    return begin('[', false);
  }

  public JsonWriter endArray() throws IOException {
    return end(']', false);
  }

  public JsonWriter name(String name) throws IOException {
    if (depth == 0 || !isObject[depth] || afterName) {
      throw new IllegalStateException("a name outside an object");
    }
    separate();
    string(name);
    out.append(": ");
    afterName = true;
    return this;
  }

  public JsonWriter value(String value) throws IOException {
    beforeValue();
    if (value == null) {
      out.append("null");
    } else {
      string(value);
    }
    return this;
  }

  public JsonWriter value(long value) throws IOException {
    beforeValue();
    out.append(Long.toString(value));
    return this;
  }

  public JsonWriter value(boolean value) throws IOException {
    beforeValue();
    out.append(Boolean.toString(value));
    return this;
  }

  /** Writes a number; JSON knows no NaN and no infinity, so they are refused. */
  public JsonWriter value(double value) throws IOException {
    if (Double.isNaN(value) || Double.isInfinite(value)) {
      throw new IllegalArgumentException("JSON has no number " + value);
    }
    beforeValue();
    out.append(Double.toString(value));
    return this;
  }

  /**
   * Writes what {@link Json#parse} returns: null, strings, booleans, numbers, and maps and
   * iterables of them.
   */
  public JsonWriter any(Object value) throws IOException {
    if (value == null || value instanceof String) {
      return value((String) value);
    } else if (value instanceof Boolean) {
      return value(((Boolean) value).booleanValue());
    } else if (value instanceof Float || value instanceof Double) {
      return value(((Number) value).doubleValue());
    } else if (value instanceof Number) {
      return value(((Number) value).longValue());
    } else if (value instanceof Map) {
      beginObject();
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
        name((String) entry.getKey()).any(entry.getValue());
      }
      return endObject();
    } else if (value instanceof Iterable) {
      beginArray();
      for (Object element : (Iterable<?>) value) {
        any(element);
      }
      return endArray();
    }
    throw new IllegalArgumentException("no JSON for " + value.getClass());
  }

  private JsonWriter begin(char bracket, boolean object) throws IOException {
    beforeValue();
    out.append(bracket);
    depth++;
    isObject[depth] = object;
    isEmpty[depth] = true;
    return this;
  }

  private JsonWriter end(char bracket, boolean object) throws IOException {
    if (depth == 0 || isObject[depth] != object || afterName) {
      throw new IllegalStateException("'" + bracket + "' closes nothing");
    }
    if (!isEmpty[depth--]) {
      newLine();
    }
    out.append(bracket);
    return this;
  }

  private void beforeValue() throws IOException {
    if (depth > 0 && isObject[depth] && !afterName) {
      throw new IllegalStateException("a value in an object has a name");
    }
    if (!afterName && depth > 0) {
      separate();
    }
    afterName = false;
  }

  private void separate() throws IOException {
    if (!isEmpty[depth]) {
      out.append(',');
    }
    isEmpty[depth] = false;
    newLine();
  }

  private void newLine() throws IOException {
    out.append('\n');
    for (int i = 0; i < depth; i++) {
      out.append("  ");
    }
  }

  private void string(String value) throws IOException {
    out.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      boolean pair = i + 1 < value.length() && Character.isSurrogatePair(c, value.charAt(i + 1));
      if (pair) {
        out.append(c).append(value.charAt(++i));
      } else if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c == '\n') {
        out.append("\\n");
      } else if (c == '\t') {
        out.append("\\t");
      } else if (Character.isSurrogate(c)) {
        out.append('\uFFFD');
      } else if (c < 0x20 || c == 0x7F || c == 0x2028 || c == 0x2029) {
        out.append("\\u");
        for (int shift = 12; shift >= 0; shift -= 4) {
          out.append(Character.forDigit(c >> shift & 15, 16));
        }
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }
}
