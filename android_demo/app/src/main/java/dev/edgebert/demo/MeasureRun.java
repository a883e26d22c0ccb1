package dev.edgebert.demo;

import android.util.Log;
import dev.edgebert.core.measure.Job;
import dev.edgebert.core.measure.Measurer;
import dev.edgebert.core.measure.Progress;
import dev.edgebert.core.measure.Result;
import dev.edgebert.core.measure.ResultFile;
import dev.edgebert.core.measure.RunListener;
import java.io.File;
import java.io.IOException;

/** A run on a thread of its own. Screens look at it; none of them owns it. */
final class MeasureRun implements RunListener {
  private static final long PROGRESS_NANOS = 1_000_000_000L;

  private final DemoApp app;
  private final MeasureRequest request;
  private final AndroidDevice device;
  private final LatencySeries series = new LatencySeries();
  private volatile Progress progress = new Progress(Progress.Phase.LOAD, 0, 0, "");
  private volatile boolean active = true;
  private volatile boolean cancelled;
  private volatile Result result;
  private volatile String saveError;
  private long toldAt;

  MeasureRun(DemoApp app, MeasureRequest request) {
    this.app = app;
    this.request = request;
    device = new AndroidDevice(app);
  }

  void start() {
    Thread thread = new Thread(this::run, "measure");
    // As the user's own screen; below it other work of the app would come first.
    thread.setPriority(Thread.MAX_PRIORITY);
    thread.start();
  }

  void stop() {
    cancelled = true;
  }

  void leaveForeground() {
    device.leaveForeground();
  }

  boolean isActive() {
    return active;
  }

  Progress progress() {
    return progress;
  }

  LatencySeries series() {
    return series;
  }

  MeasureRequest request() {
    return request;
  }

  /** What came out; null while it goes on, and where it was stopped. */
  Result result() {
    return result;
  }

  /** Why the result could not be saved; null where it was. */
  String saveError() {
    return saveError;
  }

  private void run() {
    Progress.Phase end = Progress.Phase.FAILED;
    try {
      prepare();
      Measurer.BundleSource compare =
          request.compare == null ? null : () -> app.bundles().open(request.compare);
      app.texts().release(); // its model would be counted as memory of this one
      Measurer measurer = new Measurer(app.engines(), device, app.info(), this);
      Result found =
          measurer.run(request.job, () -> app.bundles().open(request.job.bundle), compare);
      save(found);
      result = found;
      end = found.error() == null ? Progress.Phase.DONE : Progress.Phase.FAILED;
    } catch (CancelledException stopped) {
      tellAdb("stopped on the device");
    } catch (IOException | RuntimeException | Error error) {
      Log.e("edgebert", "the run ended", error);
      saveError = String.valueOf(error.getMessage());
      tellAdb(saveError);
    } finally {
      finish(end);
    }
  }

  private void prepare() throws IOException {
    app.results().mark(true);
    if (request.result != null) {
      File old = app.results().pulled(request.result);
      if (old == null) {
        throw new IOException("the storage is not there");
      }
      old.delete(); // nobody may take an older run's result for this one's
    }
  }

  private void save(Result found) throws IOException {
    String startedAt = (String) found.json().get("started_at");
    File file =
        request.result == null
            ? app.results().file(startedAt)
            : app.results().pulled(request.result);
    if (file == null) {
      throw new IOException("the storage is not there");
    }
    ResultFile.write(file, found.json());
  }

  /** Whoever waits at the other end of adb need not wait longer. */
  private void tellAdb(String reason) {
    if (request.result == null) {
      return;
    }
    Job job = request.job;
    try {
      save(Result.refused(job.kind(), job.bundle, app.info(), device, reason));
    } catch (IOException error) {
      Log.w("edgebert", "cannot write a result", error);
    }
  }

  private void finish(Progress.Phase end) {
    toldAt = 0;
    progress(new Progress(end, 1, 0, ""));
    active = false;
    try {
      app.results().mark(false);
    } catch (IOException error) {
      saveError = error.getMessage();
    }
    app.texts().changed();
  }

  @Override
  public void progress(Progress now) {
    progress = now;
    boolean due = toldAt == 0 || System.nanoTime() - toldAt >= PROGRESS_NANOS;
    if (request.result == null || !due) {
      return;
    }
    toldAt = System.nanoTime();
    File file = app.results().progress(request.result);
    try {
      if (file != null) {
        ResultFile.writeLine(file, now.json());
      }
    } catch (IOException full) {
      Log.w("edgebert", "cannot tell the progress", full); // saving the result will tell
    }
  }

  @Override
  public void latency(double ms) {
    series.add(ms);
  }

  @Override
  public boolean cancelled() {
    return cancelled;
  }
}
