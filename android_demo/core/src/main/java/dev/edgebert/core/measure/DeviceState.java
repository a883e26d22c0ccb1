package dev.edgebert.core.measure;

import java.util.LinkedHashMap;
import java.util.Map;

/** How the device is doing; null where it does not tell. */
public final class DeviceState {
  /** {@code none} to {@code shutdown}, as the schema has it. */
  public final String thermalStatus;

  public final Integer batteryPercent;
  public final Double batteryCelsius;
  public final Boolean charging;
  public final Boolean powerSave;

  /** Proportional set size of the app, in MB (1e6 bytes). */
  public final Double pssMb;

  public DeviceState(
      String thermalStatus,
      Integer batteryPercent,
      Double batteryCelsius,
      Boolean charging,
      Boolean powerSave,
      Double pssMb) {
    this.thermalStatus = thermalStatus;
    this.batteryPercent = batteryPercent;
    this.batteryCelsius = batteryCelsius;
    this.charging = charging;
    this.powerSave = powerSave;
    this.pssMb = pssMb;
  }

  /** As the schema has it. */
  public Map<String, Object> json() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("thermal_status", thermalStatus);
    values.put("battery_percent", batteryPercent);
    values.put("battery_celsius", batteryCelsius);
    values.put("charging", charging);
    values.put("power_save", powerSave);
    values.put("pss_mb", pssMb);
    return values;
  }
}
