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

  private final JsonLexer lexer;
  private final boolean[] first = new boolean[MAX_DEPTH + 1];
  private int depth;

  public JsonReader(InputStream utf8) {
    lexer = new JsonLexer(new Utf8Source(utf8));
  }

  public JsonReader(Reader reader) {
    lexer = new JsonLexer(new Utf8Source(reader));
  }

  /** What stands next; takes white space only. */
  public Kind peek() throws IOException {
    int c = lexer.skipSpace();
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
    int c = lexer.skipSpace();
    if (c == '}' || c == ']') {
      return false;
    }
    if (!first[depth]) {
      lexer.expect(',');
      c = lexer.skipSpace();
      if (c == '}' || c == ']') {
        throw error("a comma before the end");
      }
    }
    first[depth] = false;
    return true;
  }

  public String nextName() throws IOException {
    String name = nextString();
    lexer.expect(':');
    return name;
  }

  public String nextString() throws IOException {
    lexer.readString();
    return lexer.text();
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
    boolean value = lexer.skipSpace() == 't';
    lexer.word(value ? "true" : "false");
    return value;
  }

  public void nextNull() throws IOException {
    lexer.skipSpace();
    lexer.word("null");
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
    lexer.readNumber();
    return lexer.text();
  }

  /** Takes a value of any kind. */
  public void skipValue() throws IOException {
    switch (peek()) {
      case OBJECT:
        beginObject();
        while (hasNext()) {
          lexer.readString();
          lexer.expect(':');
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
        lexer.readString();
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
    if (lexer.skipSpace() >= 0) {
      throw error("text after the value");
    }
  }

  /** An exception that says where the reader stands. */
  public JsonException error(String message) {
    return lexer.error(message);
  }

  private void begin(char bracket) throws IOException {
    lexer.expect(bracket);
    if (depth == MAX_DEPTH) {
      throw error("nested deeper than " + MAX_DEPTH);
    }
    first[++depth] = true;
  }

  private void end(char bracket) throws IOException {
    lexer.expect(bracket);
    depth--;
  }
}
