package androidx.test.runner.intent;

import android.app.Instrumentation;
import android.content.Intent;

/**
 * Stands in for the class of this name in androidx.test:monitor, as far as Robolectric calls it.
 */
public interface IntentStubber {
  Instrumentation.ActivityResult getActivityResultForIntent(Intent intent);
}
