package dev.edgebert.core.text;

/** A tokenizer.json that cannot be read, or asks for something that is not supported here. */
public final class TokenizerException extends Exception {

  private static final long serialVersionUID = 1L;

  public TokenizerException(String message) {
    super(message);
  }

  public TokenizerException(String message, Throwable cause) {
    super(message, cause);
  }
}
