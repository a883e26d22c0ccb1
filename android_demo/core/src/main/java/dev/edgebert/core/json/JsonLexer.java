package dev.edgebert.core.json;

import java.io.IOException;
import java.util.Arrays;

/** The words of JSON: punctuation, strings, numbers and literals, one after the other. */
final class JsonLexer {

  private final Utf8Source source;
  private char[] buffer = new char[256];
  private int length;

  JsonLexer(Utf8Source source) {
    this.source = source;
  }

  /** An exception that says where the reader stands. */
  JsonException error(String message) {
    return new JsonException("JSON, character " + source.offset() + ": " + message);
  }

  /** The value of the string, or the number, that was read last. */
  String text() {
    return new String(buffer, 0, length);
  }

  /** Takes a number; {@link #text} is how it is written. */
  void readNumber() throws IOException {
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
  }

  /** The next character after white space, not taken, or -1 at the end. */
  int skipSpace() throws IOException {
    int c = source.peek();
    while (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      source.next();
      c = source.peek();
    }
    return c;
  }

  /** Takes white space and a character that must follow. */
  void expect(char wanted) throws IOException {
    if (skipSpace() != wanted) {
      throw error("'" + wanted + "' was expected");
    }
    source.next();
  }

  /** Takes a literal. */
  void word(String word) throws IOException {
    for (int i = 0; i < word.length(); i++) {
      if (source.next() != word.charAt(i)) {
        throw error(word + " was expected");
      }
    }
  }

  private void append(int c) {
    if (length == buffer.length) {
      buffer = Arrays.copyOf(buffer, 2 * length);
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

  /** Takes a string; {@link #text} is its value. */
  void readString() throws IOException {
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
