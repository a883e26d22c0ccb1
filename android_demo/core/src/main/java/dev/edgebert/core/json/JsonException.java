package dev.edgebert.core.json;

import java.io.IOException;

/** A text that is not JSON, or not the JSON that was expected; the message says where. */
public final class JsonException extends IOException {

  private static final long serialVersionUID = 1L;

  public JsonException(String message) {
    super(message);
  }
}
