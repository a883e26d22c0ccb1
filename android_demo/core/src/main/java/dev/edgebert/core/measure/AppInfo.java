package dev.edgebert.core.measure;

import java.util.LinkedHashMap;
import java.util.Map;

/** Which build of the app measures. */
public final class AppInfo {
  private final String version;
  private final boolean debug;

  public AppInfo(String version, boolean debug) {
    this.version = version;
    this.debug = debug;
  }

  Map<String, Object> json(String runtime) {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("version", version);
    values.put("build_type", debug ? "debug" : "release");
    values.put("runtime", runtime);
    return values;
  }
}
