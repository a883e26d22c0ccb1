package dev.edgebert.demo;

import android.content.Intent;
import dev.edgebert.core.bundle.BundleName;
import dev.edgebert.core.measure.MeasureSettings;

/** A run that somebody asks for; whatever an intent holds, this is valid or was not made. */
final class MeasureRequest {
  static final String BUNDLE = "bundle";
  static final String COMPARE = "compare";
  static final String MODE = "mode";
  static final String THREADS = "threads";
  static final String SUSTAINED = "sustained";
  static final String RESULT = "result";

  private static final int MOST_THREADS = 64;
  private static final int MOST_SECONDS = 3600;

  final String bundle;

  /** Bundle with the fp32 file to compare with; null for none. */
  final String compare;

  /** Null for the golden texts alone. */
  final MeasureSettings settings;

  /** Name of the file that adb waits for; null for a run that was started on the phone. */
  final String result;

  MeasureRequest(String bundle, String compare, MeasureSettings settings, String result) {
    this.bundle = bundle;
    this.compare = compare;
    this.settings = settings;
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
   * Reads an intent: {@code --es bundle NAME --es mode golden|measure --ei threads N --es result
   * FILE [--es compare NAME] [--ei sustained SECONDS]}.
   *
   * @throws IllegalArgumentException with the extra that is wrong
   */
  static MeasureRequest read(Intent intent) {
    String bundle = plain(intent, BUNDLE);
    String result = plain(intent, RESULT);
    String compare = intent.hasExtra(COMPARE) ? plain(intent, COMPARE) : null;
    int threads = number(intent, THREADS, 1, 1, MOST_THREADS);
    int sustained = number(intent, SUSTAINED, 0, 0, MOST_SECONDS);
    String mode = String.valueOf(intent.getStringExtra(MODE));
    MeasureSettings settings;
    switch (mode) {
      case "golden":
        settings = null;
        break;
      case "measure":
        settings = MeasureSettings.standard(new int[] {threads}, sustained);
        break;
      default:
        throw new IllegalArgumentException(MODE);
    }
    return new MeasureRequest(bundle, compare, settings, result);
  }

  private static String plain(Intent intent, String extra) {
    String value = intent.getStringExtra(extra);
    if (!BundleName.isPlain(value)) {
      throw new IllegalArgumentException(extra);
    }
    return value;
  }

  private static int number(Intent intent, String extra, int usual, int low, int high) {
    int value = intent.getIntExtra(extra, usual);
    if (value < low || value > high) {
      throw new IllegalArgumentException(extra);
    }
    return value;
  }
}
