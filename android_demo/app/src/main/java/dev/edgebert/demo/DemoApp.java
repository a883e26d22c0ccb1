package dev.edgebert.demo;

import android.app.Activity;
import android.app.Application;
import android.content.Context;
import android.content.pm.ApplicationInfo;
import android.content.pm.PackageManager;
import android.util.Log;
import dev.edgebert.core.engine.Engines;
import dev.edgebert.core.measure.AppInfo;
import dev.edgebert.core.measure.Result;
import dev.edgebert.core.measure.ResultFile;
import java.io.File;
import java.io.IOException;

/** What lives as long as the process, and so outlives a screen that is turned or left. */
public final class DemoApp extends Application {
  private Bundles bundles;
  private Results results;
  private Texts texts;
  private Engines engines;
  private volatile MeasureRun run;
  private boolean runLost;
  private volatile int started;

  static DemoApp of(Context context) {
    return (DemoApp) context.getApplicationContext();
  }

  @Override
  public void onCreate() {
    super.onCreate();
    bundles = new Bundles(this);
    results = new Results(this);
    texts = new Texts(this);
    runLost = results.clean();
    registerActivityLifecycleCallbacks(new Foreground());
  }

  Bundles bundles() {
    return bundles;
  }

  Results results() {
    return results;
  }

  /** The text that is typed, and what the model says about it. */
  Texts texts() {
    return texts;
  }

  /** The runtimes; loaded when first asked for, not on the main thread. */
  synchronized Engines engines() {
    if (engines == null) {
      engines = new Engines(getClassLoader());
    }
    return engines;
  }

  /** The run that is going on, or the last one; null where there was none. */
  MeasureRun run() {
    return run;
  }

  boolean isMeasuring() {
    return run != null && run.isActive();
  }

  /** Starts a run. The caller has seen that none is going on. */
  void start(MeasureRequest request) {
    run = new MeasureRun(this, request);
    run.start();
  }

  /** Tells whoever waits for a result that there will be none; not for that of the run going on. */
  void refuse(String resultName, String reason) {
    File file = resultName == null ? null : results.pulled(resultName);
    if (file == null || isMeasuring() && resultName.equals(run.request().result)) {
      return;
    }
    Result refused =
        Result.refused("measure", "", info(), new AndroidDevice(this), "cannot start: " + reason);
    try {
      ResultFile.write(file, refused.json());
    } catch (IOException unwritable) {
      Log.w("edgebert", "cannot write " + file.getName(), unwritable);
    }
  }

  /** Whether the app was ended during a run; true once. */
  boolean takeRunLost() {
    boolean lost = runLost;
    runLost = false;
    return lost;
  }

  /** Whether a screen of the app is seen. */
  boolean isSeen() {
    return started > 0;
  }

  AppInfo info() {
    boolean debug = (getApplicationInfo().flags & ApplicationInfo.FLAG_DEBUGGABLE) != 0;
    try {
      String version = getPackageManager().getPackageInfo(getPackageName(), 0).versionName;
      return new AppInfo(version, debug);
    } catch (PackageManager.NameNotFoundException error) {
      throw new IllegalStateException(error); // this package is installed, it runs
    }
  }

  /** Tells the run when no screen of the app is seen any more: a call, another app. */
  private final class Foreground implements ActivityLifecycleCallbacks {
    @Override
    public void onActivityStarted(Activity activity) {
      started++;
    }

    @Override
    public void onActivityStopped(Activity activity) {
      started--;
      if (started == 0 && !activity.isChangingConfigurations() && isMeasuring()) {
        run.leaveForeground();
      }
    }

    @Override
    public void onActivityCreated(Activity activity, android.os.Bundle state) {}

    @Override
    public void onActivityResumed(Activity activity) {}

    @Override
    public void onActivityPaused(Activity activity) {}

    @Override
    public void onActivitySaveInstanceState(Activity activity, android.os.Bundle state) {}

    @Override
    public void onActivityDestroyed(Activity activity) {}
  }
}
