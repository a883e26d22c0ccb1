package dev.edgebert.core.measure;

import dev.edgebert.core.bundle.Bundle;
import dev.edgebert.core.bundle.BundleException;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;

/** What a run found out, of the form of measurement.schema.json. */
public final class Result {
  private final Map<String, Object> values = new LinkedHashMap<>();
  private final List<Object> answers = new ArrayList<>();
  private final List<Object> invalidBecause = new ArrayList<>();
  private final List<Object> during = new ArrayList<>();
  private final Map<String, Object> states = new LinkedHashMap<>();
  private GoldenResult golden;
  private BundleException problem;

  /**
   * A result with no figures yet.
   *
   * @param kind {@code golden}, {@code measure} or {@code rows}
   * @param bundleName of the bundle, also where it cannot be opened
   * @param before how the device was when the run began
   */
  Result(String kind, String bundleName, AppInfo app, DeviceInfo device, DeviceState before) {
    SimpleDateFormat utc = new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss'Z'", Locale.ROOT);
    utc.setTimeZone(TimeZone.getTimeZone("UTC"));
    values.put("schema_version", 1);
    values.put("kind", kind);
    values.put("started_at", utc.format(new Date()));
    values.put("app", app.json(null));
    values.put("device", device.json());
    values.put("bundle", null);
    values.put("bundle_name", bundleName);
    values.put("model", null);
    values.put("target", null);
    values.put("valid", true);
    values.put("invalid_because", invalidBecause);
    for (String later : new String[] {"golden", "settings", "tokenizer", "sustained"}) {
      values.put(later, null);
    }
    values.put("answers", answers);
    values.put("states", states);
    states.put("before", before.json());
    states.put("during", during);
    states.put("after", before.json());
    if (device.kind != DeviceKind.PHONE) {
      invalidate("not a phone: " + device.kind.json());
    }
  }

  void bundle(Bundle bundle, AppInfo app, String runtime) {
    values.put("bundle", bundle.manifest().sha256);
    values.put("model", bundle.manifest().model);
    values.put("target", bundle.manifest().target);
    values.put("app", app.json(runtime));
  }

  void put(String name, Map<String, Object> value) {
    values.put(name, value);
  }

  void golden(GoldenResult result) {
    golden = result;
    if (values.get("kind").equals("golden")) {
      answers.add(result.json());
    } else {
      values.put("golden", result.json());
    }
    if (!result.passed()) {
      invalidate("the golden texts failed");
    }
  }

  void run(Map<String, Object> run, DeviceState state) {
    answers.add(run);
    during.add(state.json());
  }

  void row(Map<String, Object> row) {
    answers.add(row);
  }

  void after(DeviceState state) {
    states.put("after", state.json());
  }

  /** Says why these figures are not to be quoted as the latency of a phone. */
  void invalidate(String reason) {
    if (!invalidBecause.contains(reason)) {
      invalidBecause.add(reason);
    }
    values.put("valid", false);
  }

  /**
   * Ends in an error.
   *
   * @param code as run.py's exit code: 2 where the input is wrong, 3 where the device lacks something
   */
  void error(String sentence, int code, BundleException cause) {
    answers.clear();
    values.put("error", sentence);
    values.put("code", code);
    problem = cause;
    invalidate("the run failed");
  }

  /** A result that says why a run was not begun. */
  public static Result refused(
      String kind, String bundleName, AppInfo app, Device device, String reason) {
    Result result = new Result(kind, bundleName, app, device.info(), device.state());
    result.error(reason, 2, null);
    return result;
  }

  /** Null where the golden texts were not run. */
  public GoldenResult golden() {
    return golden;
  }

  /** Why there are no figures; null where there are. */
  public String error() {
    return (String) values.get("error");
  }

  /** What is wrong with the bundle; null where that is not why there are no figures. */
  public BundleException problem() {
    return problem;
  }

  /** The document to write. */
  public Map<String, Object> json() {
    return values;
  }
}
