package dev.edgebert.core.bundle;

import dev.edgebert.core.bundle.BundleException.Problem;
import dev.edgebert.core.json.Json;
import java.io.IOException;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** A JSON object read by the names of its fields; one of another form is no bundle. */
final class Fields {
  private final String where;
  private final Map<?, ?> values;

  private Fields(String where, Object value) throws BundleException {
    this.where = where;
    if (!(value instanceof Map)) {
      throw new BundleException(Problem.NOT_A_BUNDLE, where);
    }
    values = (Map<?, ?>) value;
  }

  static Fields parse(String where, String text) throws BundleException {
    try {
      return new Fields(where, Json.parse(new StringReader(text)));
    } catch (IOException error) {
      throw new BundleException(Problem.NOT_A_BUNDLE, where, error);
    }
  }

  String where() {
    return where;
  }

  boolean has(String name) {
    return values.get(name) != null;
  }

  Collection<String> names() {
    List<String> names = new ArrayList<>();
    for (Object name : values.keySet()) {
      names.add((String) name);
    }
    return names;
  }

  String text(String name) throws BundleException {
    return as(String.class, name);
  }

  boolean flag(String name) throws BundleException {
    return as(Boolean.class, name);
  }

  double number(String name) throws BundleException {
    return as(Number.class, name).doubleValue();
  }

  int integer(String name, int low, int high) throws BundleException {
    return whole(as(Number.class, name), name, low, high);
  }

  Fields object(String name) throws BundleException {
    return new Fields(where + ", " + name, values.get(name));
  }

  List<?> list(String name) throws BundleException {
    return as(List.class, name);
  }

  List<Fields> objects(String name) throws BundleException {
    List<Fields> found = new ArrayList<>();
    for (Object value : list(name)) {
      found.add(new Fields(where + ", " + name, value));
    }
    return found;
  }

  List<String> texts(String name) throws BundleException {
    List<String> found = new ArrayList<>();
    for (Object value : list(name)) {
      found.add(cast(String.class, value, name));
    }
    return found;
  }

  int[] integers(String name) throws BundleException {
    List<?> list = list(name);
    int[] found = new int[list.size()];
    for (int index = 0; index < found.length; index++) {
      Number value = cast(Number.class, list.get(index), name);
      found[index] = whole(value, name, 0, Integer.MAX_VALUE);
    }
    return found;
  }

  int smallest(String name) throws BundleException {
    int smallest = Integer.MAX_VALUE;
    for (int value : integers(name)) {
      smallest = Math.min(smallest, value);
    }
    return whole(smallest, name, 1, 1 << 20);
  }

  private int whole(Number value, String name, int low, int high) throws BundleException {
    if (value.doubleValue() != value.intValue() || value.intValue() < low || value.intValue() > high) {
      throw new BundleException(Problem.NOT_A_BUNDLE, where + ", " + name);
    }
    return value.intValue();
  }

  private <T> T as(Class<T> type, String name) throws BundleException {
    return cast(type, values.get(name), name);
  }

  private <T> T cast(Class<T> type, Object value, String name) throws BundleException {
    if (!type.isInstance(value)) {
      throw new BundleException(Problem.NOT_A_BUNDLE, where + ", " + name);
    }
    return type.cast(value);
  }
}
