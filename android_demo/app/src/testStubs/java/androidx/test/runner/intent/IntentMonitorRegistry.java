package androidx.test.runner.intent;

/**
 * Stands in for the class of this name in androidx.test:monitor, as far as Robolectric calls it.
 */
public final class IntentMonitorRegistry {
  private IntentMonitorRegistry() {}

  public static void registerInstance(IntentMonitor monitor) {}
}
