package dev.edgebert.demo;

import android.content.Intent;
import dev.edgebert.core.bundle.BundleName;
import dev.edgebert.core.measure.Job;
import dev.edgebert.core.measure.MeasureSettings;

/** A run that somebody asks for; whatever an intent holds, this is valid or was not made. */
final class MeasureRequest {
  static final String BUNDLE = "bundle";
  static final String COMPARE = "compare";
  static final String MODE = "mode";
  static final String FORMAT = "format";
  static final String THREADS = "threads";
  static final String TOKENS = "tokens";
  static final String RUNS = "runs";
  static final String WARMUPS = "warmups";
  static final String SUSTAINED = "sustained";
  static final String RESULT = "result";

  private static final int MOST_THREADS = 64;
  private static final int MOST_SECONDS = 3600;
  private static final int MOST_TOKENS = 1 << 14;
  private static final int MOST_RUNS = 1_000_000;

  final Job job;

  /** Bundle with the fp32 file to compare with; null for none. */
  final String compare;

  /** Name of the file that adb waits for; null for a run that was started on the phone. */
  final String result;

  MeasureRequest(Job job, String compare, String result) {
    this.job = job;
    this.compare = compare;
    this.result = result;
  }

  /** Whether an intent asks for a run at all. */
  static boolean isIn(Intent intent) {
    try {
      return intent != null
          && (intent.getFlags() & Intent.FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY) == 0
          && intent.hasExtra(MODE);
    } catch (RuntimeException unreadable) { // extras of a class that this app does not have
      return false;
    }
  }

  /** The name of the result that an intent asks for, where it is a plain one; else null. */
  static String resultOf(Intent intent) {
    try {
      String name = intent.getStringExtra(RESULT);
      return BundleName.isPlain(name) ? name : null;
    } catch (RuntimeException unreadable) {
      return null;
    }
  }

  /**
   * Reads an intent: {@code --es bundle NAME --es mode golden|measure|rows --es result FILE}, and
   * where wanted {@code --es format onnx|tflite --ei threads N}; for {@code measure} also {@code
   * --ei tokens N --ei runs N --ei warmups N --ei sustained SECONDS --es compare NAME}.
   *
   * @throws IllegalArgumentException with the extra that is wrong
   */
  static MeasureRequest read(Intent intent) {
    String bundle = plain(intent, BUNDLE);
    String result = plain(intent, RESULT);
    String compare = intent.hasExtra(COMPARE) ? plain(intent, COMPARE) : null;
    String format = intent.hasExtra(FORMAT) ? plain(intent, FORMAT) : null;
    int threads = number(intent, THREADS, 0, 1, MOST_THREADS);
    return new MeasureRequest(job(intent, bundle, format, threads), compare, result);
  }

  private static Job job(Intent intent, String bundle, String format, int threads) {
    switch (String.valueOf(intent.getStringExtra(MODE))) {
      case "golden":
        return Job.golden(bundle, format, threads);
      case "rows":
        return Job.rows(bundle, format, threads);
      case "measure":
        // Whoever asks for fewer runs than the rule has gets what the rule asks for.
        int runs = number(intent, RUNS, 0, 1, MOST_RUNS);
        return Job.measure(
            bundle,
            format,
            new MeasureSettings(
                new int[] {Math.max(1, threads)},
                number(intent, TOKENS, 0, 1, MOST_TOKENS),
                number(intent, WARMUPS, MeasureSettings.WARMUPS, 0, MOST_RUNS),
                Math.max(runs, MeasureSettings.RULE_INFERENCES),
                MeasureSettings.RULE_SECONDS,
                MeasureSettings.MOST_SECONDS,
                number(intent, SUSTAINED, 0, 0, MOST_SECONDS)));
      default:
        throw new IllegalArgumentException(MODE);
    }
  }

  private static String plain(Intent intent, String extra) {
    String value = intent.getStringExtra(extra);
    if (!BundleName.isPlain(value)) {
      throw new IllegalArgumentException(extra);
    }
    return value;
  }

  private static int number(Intent intent, String extra, int usual, int low, int high) {
    if (!intent.hasExtra(extra)) {
      return usual;
    }
    int value = intent.getIntExtra(extra, low - 1);
    if (value < low || value > high) {
      throw new IllegalArgumentException(extra);
    }
    return value;
  }
}
