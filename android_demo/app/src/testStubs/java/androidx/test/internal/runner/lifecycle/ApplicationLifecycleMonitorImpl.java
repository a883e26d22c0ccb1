package androidx.test.internal.runner.lifecycle;

import android.app.Application;
import androidx.test.runner.lifecycle.ApplicationLifecycleMonitor;
import androidx.test.runner.lifecycle.ApplicationStage;

/**
 * Stands in for the class of this name in androidx.test:monitor, as far as Robolectric calls it.
 */
public final class ApplicationLifecycleMonitorImpl implements ApplicationLifecycleMonitor {
  public void signalLifecycleChange(Application application, ApplicationStage stage) {}
}
