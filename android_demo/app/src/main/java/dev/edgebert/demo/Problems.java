package dev.edgebert.demo;

import android.content.Context;
import dev.edgebert.core.bundle.BundleException;

/** What is wrong with a bundle, in the user's language. */
final class Problems {
  private Problems() {}

  static String text(Context context, BundleException error) {
    return context.getString(resource(error.problem()), error.subject());
  }

  private static int resource(BundleException.Problem problem) {
    switch (problem) {
      case MISSING:
        return R.string.problem_missing;
      case BAD_NAME:
        return R.string.problem_bad_name;
      case NOT_A_BUNDLE:
        return R.string.problem_not_a_bundle;
      case NEWER_FORMAT:
        return R.string.problem_newer_format;
      case DAMAGED:
        return R.string.problem_damaged;
      case NO_ENGINE:
        return R.string.problem_no_engine;
      case OLD_RUNTIME:
        return R.string.problem_old_runtime;
      case MODEL_REFUSED:
        return R.string.problem_model_refused;
      case TOKENIZER_REFUSED:
        return R.string.problem_tokenizer_refused;
      case TOO_LARGE:
        return R.string.problem_too_large;
      case NO_SPACE:
        return R.string.problem_no_space;
      default:
        return R.string.problem_unreadable;
    }
  }
}
