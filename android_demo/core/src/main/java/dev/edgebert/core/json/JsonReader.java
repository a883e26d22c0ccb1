package dev.edgebert.core.json;

import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;

/**
 * Reads JSON (RFC 8259) as a stream of values, without building a tree of them.
 *
 * <p>Strict: no comments, no trailing commas, no lone surrogates, nothing after the value. Use:
 *
 * <pre>
 *   reader.beginObject();
 *   while (reader.hasNext()) {
 *     String name = reader.nextName();
 *     ... exactly one value: nextString, beginArray ... endArray, skipValue
 *   }
 *   reader.endObject();
 * </pre>
 */
public final class JsonReader {

  /** The kinds of value that {@link #peek} tells apart. */
  public enum Kind {
    OBJECT,
    ARRAY,
    STRING,
    NUMBER,
    BOOLEAN,
    NULL,
    /** The end of the object or array that is open, or of the text. */
    END
  }

  private static final int MAX_DEPTH = 128;

  private final Utf8Source source;
  private final boolean[] first = new boolean[MAX_DEPTH + 1];
  private int depth;
  private char[] buffer = new char[256];
  private int length;

  public JsonReader(InputStream utf8) {
    source = new Utf8Source(utf8);
  }

  public JsonReader(Reader reader) {
    source = new Utf8Source(reader);
  }

  /** What stands next; takes white space only. */
  public Kind peek() throws IOException {
    int c = skipSpace();
    switch (c) {
      case '{':
        return Kind.OBJECT;
      case '[':
        return Kind.ARRAY;
      case '"':
        return Kind.STRING;
      case 't':
      case 'f':
        return Kind.BOOLEAN;
      case 'n':
        return Kind.NULL;
      case '}':
      case ']':
      case -1:
        return Kind.END;
      default:
        if (c == '-' || c >= '0' && c <= '9') {
          return Kind.NUMBER;
        }
        throw error("a value was expected");
    }
  }

  public void beginObject() throws IOException {
    begin('{');
  }

  public void endObject() throws IOException {
    end('}');
  }

  public void beginArray() throws IOException {
    begin('[');
  }

  public void endArray() throws IOException {
    end(']');
  }

  /** Whether the open object or array has one more member; takes the comma before it. */
  public boolean hasNext() throws IOException {
    int c = skipSpace();
    if (c == '}' || c == ']') {
      return false;
    }
    if (!first[depth]) {
      expect(',');
      c = skipSpace();
      if (c == '}' || c == ']') {
        throw error("a comma before the end");
      }
    }
    first[depth] = false;
    return true;
  }

  public String nextName() throws IOException {
    String name = nextString();
    expect(':');
    return name;
  }

  public String nextString() throws IOException {
    readString();
    return new String(buffer, 0, length);
  }

  public double nextDouble() throws IOException {
    return Double.parseDouble(nextNumber());
  }

  /** A whole number that fits an int; {@code 1.0} is refused. */
  public int nextInt() throws IOException {
    String number = nextNumber();
    try {
      return Integer.parseInt(number);
    } catch (NumberFormatException e) {
      throw error(number + " is no whole number of 32 bits");
    }
  }

  public boolean nextBoolean() throws IOException {
    boolean value = skipSpace() == 't';
    word(value ? "true" : "false");
    return value;
  }

  public void nextNull() throws IOException {
    skipSpace();
    word("null");
  }

  /** Takes a null if one stands next. */
  public boolean takeNull() throws IOException {
    boolean found = peek() == Kind.NULL;
    if (found) {
      nextNull();
    }
    return found;
  }

  /** The number as it is written. */
  public String nextNumber() throws IOException {
    length = 0;
    skipSpace();
    takeIf('-');
    if (!takeIf('0')) {
      digits();
    }
    if (takeIf('.')) {
      digits();
    }
    if (takeIf('e') || takeIf('E')) {
      if (!takeIf('+')) {
        takeIf('-');
      }
      digits();
    }
    return new String(buffer, 0, length);
  }

  /** Takes a value of any kind. */
  public void skipValue() throws IOException {
    switch (peek()) {
      case OBJECT:
        beginObject();
        while (hasNext()) {
          readString();
          expect(':');
          skipValue();
        }
        endObject();
        break;
      case ARRAY:
        beginArray();
        while (hasNext()) {
          skipValue();
        }
        endArray();
        break;
      case STRING:
        readString();
        break;
      case NUMBER:
        nextNumber();
        break;
      case BOOLEAN:
        nextBoolean();
        break;
      case NULL:
        nextNull();
        break;
      default:
        throw error("a value was expected");
    }
  }

  /** Checks that nothing follows the value. */
  public void endDocument() throws IOException {
    if (skipSpace() >= 0) {
      throw error("text after the value");
    }
  }

  /** An exception that says where the reader stands. */
  public JsonException error(String message) {
    return new JsonException("JSON, character " + source.offset() + ": " + message);
  }

  private void begin(char bracket) throws IOException {
    expect(bracket);
    if (depth == MAX_DEPTH) {
      throw error("nested deeper than " + MAX_DEPTH);
    }
    first[++depth] = true;
  }

  private void end(char bracket) throws IOException {
    expect(bracket);
    depth--;
  }

  private int skipSpace() throws IOException {
    int c = source.peek();
    while (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      source.next();
      c = source.peek();
    }
    return c;
  }

  private void expect(char wanted) throws IOException {
    if (skipSpace() != wanted) {
      throw error("'" + wanted + "' was expected");
    }
    source.next();
  }

  private void word(String word) throws IOException {
    for (int i = 0; i < word.length(); i++) {
      if (source.next() != word.charAt(i)) {
        throw error(word + " was expected");
      }
    }
  }

  private void append(int c) {
    if (length == buffer.length) {
      buffer = java.util.Arrays.copyOf(buffer, 2 * length);
    }
    buffer[length++] = (char) c;
  }

  private boolean takeIf(char c) throws IOException {
    boolean found = source.peek() == c;
    if (found) {
      append(source.next());
    }
    return found;
  }

  private void digits() throws IOException {
    int before = length;
    int c = source.peek();
    while (c >= '0' && c <= '9') {
      append(source.next());
      c = source.peek();
    }
    if (length == before) {
      throw error("a digit was expected");
    }
  }

  private void readString() throws IOException {
    expect('"');
    length = 0;
    while (true) {
      int c = source.next();
      if (c == '"') {
        break;
      }
      if (c < 0x20) {
        throw error(c < 0 ? "a string without end" : "a control character in a string");
      }
      append(c == '\\' ? escape() : c);
    }
    for (int i = 0; i < length; i++) {
      if (Character.isSurrogate(buffer[i])
          && (i + 1 == length || !Character.isSurrogatePair(buffer[i], buffer[++i]))) {
        throw error("a lone surrogate in a string");
      }
    }
  }

  private char escape() throws IOException {
    int c = source.next();
    switch (c) {
      case '"':
      case '\\':
      case '/':
        return (char) c;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'u':
        int unit = 0;
        for (int i = 0; i < 4; i++) {
          int digit = source.next();
          int value = digit < 128 ? Character.digit((char) digit, 16) : -1;
          if (value < 0) {
            throw error("four hexadecimal digits were expected");
          }
          unit = unit << 4 | value;
        }
        return (char) unit;
      default:
        throw error("an unknown escape");
    }
  }
}
