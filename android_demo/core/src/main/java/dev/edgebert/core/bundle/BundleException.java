package dev.edgebert.core.bundle;

/** Why a bundle cannot be used; the screens say it in the user's language. */
public final class BundleException extends Exception {
  private static final long serialVersionUID = 1L;

  /** What is wrong. */
  public enum Problem {
    /** No bundle of that name. */
    MISSING,
    /** A name that is no plain file name. */
    BAD_NAME,
    /** No readable manifest.json, or one of something else. */
    NOT_A_BUNDLE,
    /** Made by a newer edgebert than this app knows. */
    NEWER_FORMAT,
    /** A file is missing or is not the one that the manifest describes. */
    DAMAGED,
    /** None of its model files has a runtime in this app. */
    NO_ENGINE,
    /** The runtime in this app is older than the model needs. */
    OLD_RUNTIME,
    /** The runtime refuses the model, or an inference failed. */
    MODEL_REFUSED,
    /** A tokenizer that this app cannot run. */
    TOKENIZER_REFUSED,
    /** Too large for this app. */
    TOO_LARGE,
    /** Not enough room on the device. */
    NO_SPACE,
    /** A file could not be read or written. */
    UNREADABLE
  }

  private final Problem problem;
  private final String subject;

  /**
   * @param problem what is wrong
   * @param subject what it is about: a name, a file, a version
   */
  public BundleException(Problem problem, String subject) {
    this(problem, subject, null);
  }

  /** With the error that led to it. */
  public BundleException(Problem problem, String subject, Throwable cause) {
    super(problem.name().toLowerCase(java.util.Locale.ROOT).replace('_', ' ') + ": " + subject, cause);
    this.problem = problem;
    this.subject = subject;
  }

  public Problem problem() {
    return problem;
  }

  /** Whether the device lacks something; else the bundle is at fault. */
  public boolean isOfTheDevice() {
    return problem == Problem.NO_ENGINE
        || problem == Problem.OLD_RUNTIME
        || problem == Problem.NO_SPACE
        || problem == Problem.TOO_LARGE;
  }

  public String subject() {
    return subject;
  }
}
