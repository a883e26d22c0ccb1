package dev.edgebert.core.measure;

import dev.edgebert.core.bundle.Bundle;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import dev.edgebert.core.bundle.GoldenRow;
import dev.edgebert.core.bundle.Manifest;
import dev.edgebert.core.bundle.TextRow;
import dev.edgebert.core.engine.Classifier;
import dev.edgebert.core.engine.Engine;
import dev.edgebert.core.engine.Engines;
import dev.edgebert.core.measure.Progress.Phase;
import dev.edgebert.core.statistics.Latencies;
import dev.edgebert.core.text.Tokenizer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One run: the golden texts, the tokenizer, the model at each thread count, and a sustained run.
 */
public final class Measurer {
  /** Files that are compared take so many turns, so that heat slows all alike. */
  private static final int TURNS = 5;

  private static final int TOKENIZER_RUNS = 1024;
  private static final double TOKENIZER_SECONDS = 5;

  private final Engines engines;
  private final Device device;
  private final AppInfo app;
  private final RunListener listener;
  private MeasureSettings settings;
  private double workDone;
  private double workInAll = 1;

  /**
   * @param listener told of the progress; stops the run
   */
  public Measurer(Engines engines, Device device, AppInfo app, RunListener listener) {
    this.engines = engines;
    this.device = device;
    this.app = app;
    this.listener = listener;
  }

  /** A source of bundles that fails as a bundle does. */
  public interface BundleSource {
    Bundle open() throws BundleException;
  }

  /**
   * Runs; a failure is a result with an error.
   *
   * @param job what to run
   * @param source opens the bundle
   * @param fp32 opens a bundle to compare with; null for none
   * @throws RunListener.CancelledException when the listener stops it
   */
  public Result run(Job job, BundleSource source, BundleSource fp32) {
    settings = job.settings;
    Result result = new Result(job.kind(), job.bundle, app, device.info(), device.state());
    try {
      tell(Phase.LOAD, 0, "");
      run(job, result, source.open(), fp32 == null ? null : fp32.open());
    } catch (BundleException error) {
      result.error(error.getMessage(), error.isOfTheDevice() ? 3 : 2, error);
    } catch (OutOfMemoryError error) {
      result.error("not enough memory", 3, null);
    }
    DeviceState after = device.state();
    result.after(after);
    if (device.leftForeground()) {
      result.invalidate("the app left the foreground");
    }
    if (Boolean.TRUE.equals(after.powerSave)) {
      result.invalidate("battery saver was on");
    }
    return result;
  }

  private void run(Job job, Result result, Bundle bundle, Bundle fp32) throws BundleException {
    Manifest manifest = bundle.manifest();
    result.bundle(bundle, app, null);
    List<TimedModel.Source> sources;
    int tokens;
    int threads = job.threads > 0 ? job.threads : manifest.threads;
    try (Classifier classifier = new Classifier(bundle, engines, job.format, threads)) {
      result.bundle(bundle, app, classifier.runtime());
      if (job.rows) {
        rows(result, bundle, classifier);
        return;
      }
      List<GoldenRow> rows = new ArrayList<>();
      if (bundle.has(Bundle.GOLDEN)) {
        tell(Phase.GOLDEN, 0, classifier.model().file);
        rows = bundle.golden(classifier.model().format);
        result.golden(GoldenCheck.run(classifier, rows, listener));
      } else if (settings == null) {
        throw new BundleException(Problem.DAMAGED, Bundle.GOLDEN);
      } else {
        result.invalidate("the bundle has no golden texts");
      }
      if (settings == null) {
        return;
      }
      int asked = settings.tokens > 0 ? settings.tokens : manifest.measuredLength;
      tokens = Math.min(asked, classifier.model().maxLength);
      result.put("settings", settings.json(tokens));
      if (!rows.isEmpty()) {
        tell(Phase.TOKENIZER, 0, Bundle.TOKENIZER);
        result.put("tokenizer", tokenizer(classifier, rows));
      }
      sources = sources(bundle, fp32, classifier);
    }
    workInAll =
        settings.threads.length * sources.size() * settings.minSeconds + settings.sustainedSeconds;
    for (int count : settings.threads) {
      measure(result, sources, count, tokens);
    }
    if (settings.sustainedSeconds > 0) {
      sustain(result, sources.get(0), settings.threads[0], tokens);
    }
  }

  private void rows(Result result, Bundle bundle, Classifier classifier) throws BundleException {
    List<TextRow> rows = bundle.rows();
    workInAll = Math.max(1, rows.size());
    result.row(RowLogits.origin(classifier, device.info()));
    for (TextRow row : rows) {
      stopIfCancelled();
      result.row(RowLogits.of(row, classifier));
      workDone++;
      tell(Phase.ROWS, 0, classifier.model().file);
    }
  }

  private List<TimedModel.Source> sources(Bundle bundle, Bundle fp32, Classifier classifier)
      throws BundleException {
    List<TimedModel.Source> sources = new ArrayList<>();
    Engine engine = engines.find(classifier.model());
    Manifest manifest = bundle.manifest();
    String file = classifier.model().file;
    sources.add(source(bundle, file, classifier.model().scheme, engine));
    if (fp32 != null) {
      Engine other = engines.find(engines.pick(fp32, null));
      sources.add(source(fp32, engines.pick(fp32, null).file, "fp32", other));
    } else if (engine.format().equals("onnx") && bundle.has(Bundle.FP32)) {
      sources.add(
          new TimedModel.Source(
              Bundle.FP32,
              "fp32",
              bundle.mapUnlisted(Bundle.FP32),
              engine,
              manifest.padId,
              manifest.padsLeft));
    }
    return sources;
  }

  private static TimedModel.Source source(Bundle bundle, String file, String scheme, Engine engine)
      throws BundleException {
    Manifest manifest = bundle.manifest();
    return new TimedModel.Source(
        file, scheme, bundle.map(file), engine, manifest.padId, manifest.padsLeft);
  }

  private Map<String, Object> tokenizer(Classifier classifier, List<GoldenRow> rows) {
    Tokenizer tokenizer = classifier.tokenizer();
    Latencies latencies = new Latencies();
    for (GoldenRow row : rows) { // warm-up
      tokenizer.encode(row.text, row.textPair, row.maxLength);
    }
    while (latencies.count() < TOKENIZER_RUNS && latencies.seconds() < TOKENIZER_SECONDS) {
      GoldenRow row = rows.get(latencies.count() % rows.size());
      stopIfCancelled();
      long start = System.nanoTime();
      tokenizer.encode(row.text, row.textPair, row.maxLength);
      latencies.add((System.nanoTime() - start) / 1e6);
    }
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("load_ms", classifier.tokenizerLoadMs());
    values.put("texts", rows.size());
    values.put("runs", latencies.count());
    TimedModel.percentiles(values, latencies.sorted());
    return values;
  }

  private void measure(Result result, List<TimedModel.Source> sources, int threads, int tokens)
      throws BundleException {
    List<TimedModel> models = new ArrayList<>();
    try {
      for (TimedModel.Source source : sources) {
        tell(Phase.WARMUP, threads, source.file);
        TimedModel model = new TimedModel(source, threads, tokens, device);
        models.add(model);
        for (int run = 0; run < settings.warmups; run++) {
          stopIfCancelled();
          model.runMs();
        }
      }
      for (int turn = 1; turn <= TURNS; turn++) {
        for (TimedModel model : models) {
          turn(model, (double) turn / TURNS);
        }
      }
      TimedModel fp32 = models.size() > 1 ? models.get(1) : null;
      for (TimedModel model : models) {
        result.run(model.json(settings.warmups, model == fp32 ? null : fp32), device.state());
        if (!model.ruleMet()) {
          result.invalidate("fewer than 1024 inferences or less than 60 s");
        }
      }
    } finally {
      for (TimedModel model : models) {
        model.close();
      }
    }
  }

  /** Runs a model until it has its share of inferences and of seconds. */
  private void turn(TimedModel model, double share) throws BundleException {
    model.runMs(); // the other file's turn has emptied the caches
    Latencies latencies = model.latencies();
    while ((latencies.count() < share * settings.minInferences
            || latencies.seconds() < share * settings.minSeconds)
        && latencies.seconds() < share * settings.maxSeconds) {
      record(model, latencies, Phase.MEASURE);
    }
    model.peak(device.state());
  }

  private void record(TimedModel model, Latencies latencies, Phase phase) throws BundleException {
    stopIfCancelled();
    double ms = model.runMs();
    latencies.add(ms);
    listener.latency(ms);
    workDone += ms / 1e3;
    tell(phase, model.threads, model.source.file);
  }

  private void sustain(Result result, TimedModel.Source source, int threads, int tokens)
      throws BundleException {
    try (TimedModel model = new TimedModel(source, threads, tokens, device)) {
      Sustained sustained = new Sustained(source.file, threads);
      while (sustained.seconds() < settings.sustainedSeconds) {
        Latencies window = new Latencies();
        while (window.seconds() < Math.min(Sustained.WINDOW_SECONDS, settings.sustainedSeconds)) {
          record(model, window, Phase.SUSTAINED);
        }
        sustained.add(window, device.state());
      }
      result.put("sustained", sustained.json());
    }
  }

  private void tell(Phase phase, int threads, String file) {
    listener.progress(new Progress(phase, workDone / workInAll, threads, file));
  }

  private void stopIfCancelled() {
    if (listener.cancelled()) {
      throw new RunListener.CancelledException();
    }
  }
}
