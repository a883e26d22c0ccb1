package androidx.test.platform.app;

import android.app.Instrumentation;
import android.os.Bundle;

/**
 * Stands in for the class of this name in androidx.test:monitor, as far as Robolectric calls it.
 */
public final class InstrumentationRegistry {
  private static Instrumentation instrumentation;

  private InstrumentationRegistry() {}

  public static Instrumentation getInstrumentation() {
    return instrumentation;
  }

  public static void registerInstance(Instrumentation registered, Bundle arguments) {
    instrumentation = registered;
  }
}
