package dev.edgebert.core.engine;

import dev.edgebert.core.bundle.Bundle;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.Manifest;
import dev.edgebert.core.bundle.ModelEntry;
import dev.edgebert.core.engine.Prediction.Answer;
import dev.edgebert.core.statistics.Statistics;
import dev.edgebert.core.text.Encoding;
import dev.edgebert.core.text.Tokenizer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A bundle, ready to use: text in, labels out. Not for several threads at once. */
public final class Classifier implements AutoCloseable {
  private final Bundle bundle;
  private final ModelEntry model;
  private final Tokenizer tokenizer;
  private final Session session;
  private final String runtime;
  private final double tokenizerLoadMs;
  private final double modelLoadMs;

  /**
   * Loads tokenizer and model, after their checksums.
   *
   * @param format which model file; null for the first that can run
   * @param threads of one inference
   * @throws BundleException it cannot be used, and why
   */
  public Classifier(Bundle bundle, Engines engines, String format, int threads)
      throws BundleException {
    this.bundle = bundle;
    model = engines.pick(bundle, format);
    Engine engine = engines.find(model);
    runtime = engine.runtime();
    Manifest manifest = bundle.manifest();
    long start = System.nanoTime();
    tokenizer = bundle.tokenizer();
    long loaded = System.nanoTime();
    session = engine.load(bundle.map(model.file), threads, manifest.padId, manifest.padsLeft);
    tokenizerLoadMs = (loaded - start) / 1e6;
    modelLoadMs = (System.nanoTime() - loaded) / 1e6;
  }

  public Bundle bundle() {
    return bundle;
  }

  public ModelEntry model() {
    return model;
  }

  public Tokenizer tokenizer() {
    return tokenizer;
  }

  public Session session() {
    return session;
  }

  /** Name and version of what runs the model. */
  public String runtime() {
    return runtime;
  }

  /** Checksum included. */
  public double tokenizerLoadMs() {
    return tokenizerLoadMs;
  }

  /** Checksum included. */
  public double modelLoadMs() {
    return modelLoadMs;
  }

  /**
   * Classifies a text.
   *
   * @param pair the second text; null for a single one
   */
  public Prediction predict(String text, String pair) throws BundleException {
    long start = System.nanoTime();
    Encoding encoding = tokenizer.encode(text, pair, model.maxLength);
    boolean truncated = isTruncated(text, pair, encoding);
    long encoded = System.nanoTime();
    float[][] logits = session.run(encoding.ids, encoding.typeIds);
    double modelMs = (System.nanoTime() - encoded) / 1e6;
    List<Answer> answers = new ArrayList<>();
    if (bundle.manifest().task.equals("token")) {
      addTags(text, encoding, logits, answers);
    } else {
      addAnswers(logits[0], answers);
    }
    double tokenizerMs = (encoded - start) / 1e6;
    return new Prediction(answers, encoding.ids.length, truncated, tokenizerMs, modelMs);
  }

  /** Whether an encoding leaves out the end of its text. */
  public boolean isTruncated(String text, String pair, Encoding encoding) {
    return encoding.ids.length == model.maxLength
        && tokenizer.encode(text, pair, model.maxLength + 1).ids.length > model.maxLength;
  }

  private void addAnswers(float[] logits, List<Answer> answers) {
    Manifest manifest = bundle.manifest();
    boolean regression = manifest.task.equals("regression");
    double[] scores = Statistics.softmax(logits);
    for (int index = 0; index < logits.length; index++) {
      double score =
          regression
              ? logits[index]
              : manifest.task.equals("multi_label")
                  ? Statistics.sigmoid(logits[index])
                  : scores[index];
      String label = index < manifest.labels.size() ? manifest.labels.get(index) : "";
      answers.add(new Answer(label, score, null));
    }
    if (!regression) { // a stable sort: of equal ones the first label wins, as in run.py
      Collections.sort(answers, (left, right) -> Double.compare(right.score, left.score));
    }
  }

  private void addTags(String text, Encoding encoding, float[][] logits, List<Answer> answers) {
    int[] starts = Encoding.toUtf16(encoding.starts, text);
    int[] ends = Encoding.toUtf16(encoding.ends, text);
    for (int token = 0; token < logits.length; token++) {
      if (starts[token] < ends[token]) { // special tokens stand for no text
        double[] scores = Statistics.softmax(logits[token]);
        int best = Statistics.argmax(scores);
        String label = bundle.manifest().labels.get(best);
        answers.add(new Answer(label, scores[best], text.substring(starts[token], ends[token])));
      }
    }
  }

  @Override
  public void close() {
    session.close();
  }
}
