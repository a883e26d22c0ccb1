package androidx.test.runner.lifecycle;

/**
 * Stands in for the class of this name in androidx.test:monitor, as far as Robolectric calls it.
 */
public final class ApplicationLifecycleMonitorRegistry {
  private ApplicationLifecycleMonitorRegistry() {}

  public static void registerInstance(ApplicationLifecycleMonitor monitor) {}
}
