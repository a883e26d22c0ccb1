package androidx.test.runner.intent;

/**
 * Stands in for the class of this name in androidx.test:monitor, as far as Robolectric calls it.
 */
public final class IntentStubberRegistry {
  private IntentStubberRegistry() {}

  public static boolean isLoaded() {
    return false;
  }

  public static IntentStubber getInstance() {
    throw new IllegalStateException("none is loaded");
  }
}
