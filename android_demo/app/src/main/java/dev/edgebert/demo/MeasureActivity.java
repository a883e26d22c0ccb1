package dev.edgebert.demo;

import android.content.Intent;
import android.os.Bundle;
import android.os.Handler;
import android.os.Looper;
import android.view.View;
import android.view.WindowManager;
import android.widget.ArrayAdapter;
import android.widget.Button;
import android.widget.CheckBox;
import android.widget.ProgressBar;
import android.widget.Spinner;
import android.widget.TextView;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.measure.GoldenResult;
import dev.edgebert.core.measure.Job;
import dev.edgebert.core.measure.MeasureSettings;
import dev.edgebert.core.measure.Progress;
import dev.edgebert.core.measure.Result;
import java.util.ArrayList;
import java.util.List;

/**
 * Measure, and watch. The run belongs to {@link DemoApp}: turning the phone or taking a call does
 * not end it.
 *
 * <p>The shell may start this with a run to make, see {@link MeasureRequest#read}.
 */
public final class MeasureActivity extends Screen {
  private static final int[] THREAD_BOXES = {R.id.threads_1, R.id.threads_2, R.id.threads_4};
  private static final int[] THREADS = {1, 2, 4};
  private static final double SUSTAINED_SECONDS = 600;
  private static final long REFRESH_MS = 250;

  private final Handler handler = new Handler(Looper.getMainLooper());
  private final Runnable refresh = this::refresh;
  private List<String> others;
  private String notice;

  @Override
  int layout() {
    return R.layout.measure;
  }

  @Override
  protected void onCreate(Bundle state) {
    super.onCreate(state);
    findViewById(R.id.start).setOnClickListener(view -> startOrStop());
    if (app().takeRunLost()) {
      notice = getString(R.string.run_lost);
    }
    if (state == null) { // else the same intent comes again: the phone was turned
      takeRequest(getIntent());
    }
  }

  @Override
  protected void onNewIntent(Intent intent) {
    super.onNewIntent(intent);
    takeRequest(intent);
  }

  @Override
  protected void onStart() {
    super.onStart();
    offerComparisons();
    refresh();
  }

  @Override
  protected void onStop() {
    super.onStop();
    handler.removeCallbacks(refresh);
  }

  private void takeRequest(Intent intent) {
    if (!MeasureRequest.isIn(intent)) {
      return;
    }
    try {
      MeasureRequest request = MeasureRequest.read(intent);
      if (app().isMeasuring()) {
        throw new IllegalArgumentException("busy");
      }
      notice = null;
      app().start(request);
    } catch (RuntimeException wrong) { // whatever another process put into the extras
      String reason = String.valueOf(wrong.getMessage());
      notice = getString(R.string.bad_request, reason);
      app().refuse(MeasureRequest.resultOf(intent), reason);
    }
  }

  private void offerComparisons() {
    others = new ArrayList<>(app().bundles().names());
    others.remove(app().bundles().chosen());
    others.add(0, getString(R.string.nothing));
    Spinner compare = findViewById(R.id.compare);
    ArrayAdapter<String> adapter =
        new ArrayAdapter<>(this, android.R.layout.simple_spinner_item, others);
    adapter.setDropDownViewResource(android.R.layout.simple_spinner_dropdown_item);
    compare.setAdapter(adapter);
    int seen = others.size() > 1 ? View.VISIBLE : View.GONE;
    compare.setVisibility(seen);
    findViewById(R.id.compare_label).setVisibility(seen);
  }

  private void startOrStop() {
    if (app().isMeasuring()) {
      app().run().stop();
      return;
    }
    List<Integer> chosen = new ArrayList<>();
    for (int index = 0; index < THREADS.length; index++) {
      if (((CheckBox) findViewById(THREAD_BOXES[index])).isChecked()) {
        chosen.add(THREADS[index]);
      }
    }
    String bundle = app().bundles().chosen();
    if (bundle == null || chosen.isEmpty()) {
      notice =
          bundle == null
              ? Problems.text(this, new BundleException(BundleException.Problem.MISSING, ""))
              : getString(R.string.bad_request, getString(R.string.threads));
      refresh();
      return;
    }
    int[] threads = new int[chosen.size()];
    for (int index = 0; index < threads.length; index++) {
      threads[index] = chosen.get(index);
    }
    boolean sustained = ((CheckBox) findViewById(R.id.sustained)).isChecked();
    int other = ((Spinner) findViewById(R.id.compare)).getSelectedItemPosition();
    notice = null;
    MeasureSettings settings =
        MeasureSettings.standard(threads, sustained ? SUSTAINED_SECONDS : 0);
    app()
        .start(
            new MeasureRequest(
                Job.measure(bundle, null, settings), other > 0 ? others.get(other) : null, null));
    refresh();
  }

  private void refresh() {
    handler.removeCallbacks(refresh);
    MeasureRun run = app().run();
    boolean active = app().isMeasuring();
    String bundle = active ? run.request().job.bundle : app().bundles().chosen();
    show(findViewById(R.id.bundle), bundle);
    findViewById(R.id.options).setVisibility(active ? View.GONE : View.VISIBLE);
    ((Button) findViewById(R.id.start)).setText(active ? R.string.stop : R.string.start);
    findViewById(R.id.run).setVisibility(run == null ? View.GONE : View.VISIBLE);
    show(findViewById(R.id.message), message(run, active));
    if (run != null) {
      show(run);
    }
    if (active) { // a phone that sleeps is measured asleep
      getWindow().addFlags(WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON);
      handler.postDelayed(refresh, REFRESH_MS);
    } else {
      getWindow().clearFlags(WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON);
    }
  }

  private void show(MeasureRun run) {
    Progress progress = run.progress();
    ((TextView) findViewById(R.id.phase)).setText(phase(progress));
    ((ProgressBar) findViewById(R.id.progress))
        .setProgress((int) Math.round(1000 * progress.share));
    double[][] points = run.series().points();
    ((ChartView) findViewById(R.id.chart)).show(points[0], points[1]);
    double[] found = run.series().percentiles();
    String text =
        found == null
            ? null
            : getString(R.string.percentiles, number(found[0]), number(found[1]), number(found[2]));
    show(findViewById(R.id.percentiles), text);
  }

  private String phase(Progress progress) {
    switch (progress.phase) {
      case LOAD:
        return getString(R.string.phase_load);
      case GOLDEN:
        return getString(R.string.phase_golden);
      case TOKENIZER:
        return getString(R.string.phase_tokenizer);
      case WARMUP:
        return getString(R.string.phase_warmup, progress.file, progress.threads);
      case MEASURE:
        return getString(R.string.phase_measure, progress.file, progress.threads);
      case SUSTAINED:
        return getString(R.string.phase_sustained, progress.file, progress.threads);
      case ROWS:
        return getString(R.string.phase_rows);
      case DONE:
        return getString(R.string.phase_done);
      default:
        return getString(R.string.phase_failed);
    }
  }

  private String message(MeasureRun run, boolean active) {
    if (notice != null || run == null || active) {
      return notice;
    }
    if (run.saveError() != null) {
      return getString(R.string.not_saved, run.saveError());
    }
    Result result = run.result();
    if (result == null) {
      return getString(R.string.stopped);
    }
    if (result.error() != null) {
      return result.problem() == null ? result.error() : Problems.text(this, result.problem());
    }
    GoldenResult golden = result.golden();
    if (golden == null) {
      return getString(R.string.golden_none);
    }
    return golden.passed()
        ? getString(R.string.golden_passed, golden.rows)
        : getString(
            R.string.golden_failed, golden.faults.size(), golden.rows, golden.faults.get(0));
  }
}
