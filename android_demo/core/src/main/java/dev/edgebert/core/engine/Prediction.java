package dev.edgebert.core.engine;

import java.util.Collections;
import java.util.List;

/** What a model says about a text, and how long it took. */
public final class Prediction {
  /** A label with its confidence, or a value with no label where the task is regression. */
  public static final class Answer {
    public final String label;

    /** 0 to 1; the value itself for regression. */
    public final double score;

    /** The text that a tag is about; null where the answer is about all of it. */
    public final String token;

    Answer(String label, double score, String token) {
      this.label = label;
      this.score = score;
      this.token = token;
    }
  }

  /** Best first; for tags, in the order of the text. */
  public final List<Answer> answers;

  /** Tokens, special ones included. */
  public final int tokens;

  /** Whether the text was longer than the model takes. */
  public final boolean truncated;

  public final double tokenizerMs;
  public final double modelMs;

  Prediction(
      List<Answer> answers, int tokens, boolean truncated, double tokenizerMs, double modelMs) {
    this.answers = Collections.unmodifiableList(answers);
    this.tokens = tokens;
    this.truncated = truncated;
    this.tokenizerMs = tokenizerMs;
    this.modelMs = modelMs;
  }
}
