package dev.edgebert.core.measure;

import java.util.LinkedHashMap;
import java.util.Map;

/** Which device this is; null where it does not tell. */
public final class DeviceInfo {
  public final DeviceKind kind;
  private final Map<String, Object> values = new LinkedHashMap<>();

  public DeviceInfo(
      DeviceKind kind,
      String manufacturer,
      String model,
      String soc,
      String abi,
      int cores,
      String android,
      Integer apiLevel,
      String governor,
      Integer maxMhz) {
    this.kind = kind;
    values.put("kind", kind.json());
    values.put("manufacturer", manufacturer);
    values.put("model", model);
    values.put("soc", soc);
    values.put("abi", abi);
    values.put("cores", cores);
    values.put("android", android);
    values.put("api_level", apiLevel);
    values.put("governor", governor);
    values.put("max_mhz", maxMhz);
  }

  /** The device in a few words. */
  public String machine() {
    Object soc = values.get("soc") == null ? "" : ", " + values.get("soc");
    return values.get("manufacturer") + " " + values.get("model") + soc + ", " + values.get("abi");
  }

  /** As the schema has it. */
  public Map<String, Object> json() {
    return values;
  }
}
