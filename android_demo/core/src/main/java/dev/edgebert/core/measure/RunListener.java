package dev.edgebert.core.measure;

/** Follows a run; called on the thread that runs it. */
public interface RunListener {
  void progress(Progress progress);

  /** One measured inference. */
  void latency(double ms);

  /** Whether the run has to stop. */
  boolean cancelled();

  /** Ends a run that somebody stopped. */
  final class CancelledException extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }
}
