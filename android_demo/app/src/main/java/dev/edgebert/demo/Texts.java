package dev.edgebert.demo;

import android.os.Handler;
import android.os.Looper;
import android.util.Log;
import dev.edgebert.core.bundle.Bundle;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import dev.edgebert.core.bundle.GoldenRow;
import dev.edgebert.core.engine.Classifier;
import dev.edgebert.core.engine.Prediction;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The text that is typed, and what the model says about it. One thread loads and classifies; the
 * newest text counts, older ones that still wait are left out. Texts are kept in memory only.
 */
final class Texts {
  /** Characters that a text may have. */
  static final int MOST_CHARACTERS = 100_000;

  private static final int MOST_EXAMPLES = 20;

  /** What there is to show. */
  static final class Shown {
    /** Null before the first answer, and where there is an error. */
    final Prediction prediction;

    /** Null where there is none. */
    final BundleException error;

    final Classifier classifier;

    Shown(Classifier classifier, Prediction prediction, BundleException error) {
      this.classifier = classifier;
      this.prediction = prediction;
      this.error = error;
    }
  }

  private final DemoApp app;
  private final Handler main = new Handler(Looper.getMainLooper());
  private final ExecutorService worker = Executors.newSingleThreadExecutor();

  // The main thread's.
  private String text = "";
  private String pair = "";
  private Runnable listener;
  private Shown shown;
  private int asked;

  // The worker's.
  private Classifier classifier;
  private String loaded;
  private volatile int newest;

  // Written by the worker, read by the main thread.
  private volatile List<String> examples = new ArrayList<>();
  private volatile boolean pairs;

  Texts(DemoApp app) {
    this.app = app;
  }

  String text() {
    return text;
  }

  String pair() {
    return pair;
  }

  /** What there is to show; null while the first is on its way. */
  Shown shown() {
    return shown;
  }

  /** Texts of the bundle to try, none of them strange. */
  List<String> examples() {
    return examples;
  }

  /** Whether the model takes two texts. */
  boolean takesPairs() {
    return pairs;
  }

  /** Who is told on the main thread that there is something new to show; null for nobody. */
  void listen(Runnable listener) {
    this.listener = listener;
  }

  void type(String text, String pair) {
    this.text = text;
    this.pair = pair;
    changed();
  }

  /** Classifies again: the text, the bundle or the run has changed. */
  void changed() {
    main.post(this::ask);
  }

  /** Frees the model and returns when it is free; before a measurement, not on the main thread. */
  void release() {
    try {
      worker.submit(this::close).get();
    } catch (InterruptedException | ExecutionException error) {
      throw new IllegalStateException(error); // nobody interrupts, and closing does not fail
    }
  }

  private void ask() {
    newest = ++asked;
    int number = asked;
    String first = text;
    String second = pair;
    worker.execute(
        () -> {
          if (number == newest && !app.isMeasuring()) {
            show(number, answer(first, second));
          }
        });
  }

  private Shown answer(String first, String second) {
    try {
      load();
      boolean empty = first.trim().isEmpty();
      Prediction prediction =
          empty ? null : classifier.predict(first, pairs ? second : null);
      return new Shown(classifier, prediction, null);
    } catch (BundleException error) {
      return new Shown(null, null, error);
    } catch (RuntimeException | OutOfMemoryError error) { // no text and no bundle may end the app
      Log.e("edgebert", "cannot classify", error);
      close();
      String what = String.valueOf(error.getMessage());
      return new Shown(null, null, new BundleException(Problem.MODEL_REFUSED, what, error));
    }
  }

  private void load() throws BundleException {
    String name = app.bundles().chosen();
    Bundle bundle = app.bundles().open(name);
    String version = name + " " + bundle.manifest().sha256;
    if (version.equals(loaded) && classifier != null) {
      return;
    }
    close();
    classifier = new Classifier(bundle, app.engines(), null, bundle.manifest().threads);
    loaded = version;
    List<String> found = new ArrayList<>();
    boolean two = false;
    if (bundle.has(Bundle.GOLDEN)) {
      for (GoldenRow row : bundle.golden(classifier.model().format)) {
        two |= row.textPair != null;
        if (found.size() < MOST_EXAMPLES && row.text.matches("[\\p{L}\\p{P} ]{8,200}")) {
          found.add(row.text);
        }
      }
    }
    examples = found;
    pairs = two;
  }

  private void close() {
    if (classifier != null) {
      classifier.close();
    }
    classifier = null;
    loaded = null;
  }

  private void show(int number, Shown answer) {
    main.post(
        () -> {
          if (number == asked) {
            shown = answer;
            if (listener != null) {
              listener.run();
            }
          }
        });
  }
}
