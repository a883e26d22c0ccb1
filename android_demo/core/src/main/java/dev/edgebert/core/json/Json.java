package dev.edgebert.core.json;

import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as Java's own types, for small files; {@link JsonReader} is there for large ones. */
public final class Json {

  private Json() {}

  /** Like {@link #parse(Reader)}, of UTF-8. */
  public static Object parse(InputStream utf8) throws IOException {
    return document(new JsonReader(utf8));
  }

  /**
   * Reads one value to the end of the text.
   *
   * @return a {@code Map<String, Object>} in the order of the text, a {@code List<Object>}, a
   *     String, a Long (where the number has neither point nor exponent and fits), a Double, a
   *     Boolean or null
   * @throws JsonException where the text is not JSON or a name stands twice in an object
   */
  public static Object parse(Reader reader) throws IOException {
    return document(new JsonReader(reader));
  }

  /** Reads the next value of a reader, as {@link #parse(Reader)} does. */
  public static Object value(JsonReader reader) throws IOException {
    switch (reader.peek()) {
      case OBJECT:
        return object(reader);
      case ARRAY:
        List<Object> list = new ArrayList<>();
        reader.beginArray();
        while (reader.hasNext()) {
          list.add(value(reader));
        }
        reader.endArray();
        return list;
      case STRING:
        return reader.nextString();
      case NUMBER:
        return number(reader.nextNumber());
      case BOOLEAN:
        return reader.nextBoolean();
      case NULL:
        reader.nextNull();
        return null;
      default:
        throw reader.error("a value was expected");
    }
  }

  private static Object document(JsonReader reader) throws IOException {
    Object value = value(reader);
    reader.endDocument();
    return value;
  }

  private static Map<String, Object> object(JsonReader reader) throws IOException {
    Map<String, Object> map = new LinkedHashMap<>();
    reader.beginObject();
    while (reader.hasNext()) {
      String name = reader.nextName();
      if (map.containsKey(name)) {
        throw reader.error("'" + name + "' stands twice");
      }
      map.put(name, value(reader));
    }
    reader.endObject();
    return map;
  }

  private static Object number(String written) {
    boolean whole =
        written.indexOf('.') < 0 && written.indexOf('e') < 0 && written.indexOf('E') < 0;
    if (whole && !written.equals("-0")) {
      try {
        return Long.parseLong(written);
      } catch (NumberFormatException tooLarge) {
        return Double.parseDouble(written);
      }
    }
    return Double.parseDouble(written);
  }
}
