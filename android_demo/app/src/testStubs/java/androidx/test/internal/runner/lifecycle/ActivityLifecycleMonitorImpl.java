package androidx.test.internal.runner.lifecycle;

import android.app.Activity;
import androidx.test.runner.lifecycle.ActivityLifecycleMonitor;
import androidx.test.runner.lifecycle.Stage;

/**
 * Stands in for the class of this name in androidx.test:monitor, as far as Robolectric calls it.
 */
public final class ActivityLifecycleMonitorImpl implements ActivityLifecycleMonitor {
  public void signalLifecycleChange(Stage stage, Activity activity) {}
}
