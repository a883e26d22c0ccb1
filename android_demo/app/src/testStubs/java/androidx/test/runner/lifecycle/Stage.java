package androidx.test.runner.lifecycle;

/**
 * Stands in for the class of this name in androidx.test:monitor, as far as Robolectric calls it.
 */
public enum Stage {
  PRE_ON_CREATE,
  CREATED,
  STARTED,
  RESUMED,
  PAUSED,
  STOPPED,
  RESTARTED,
  DESTROYED
}
