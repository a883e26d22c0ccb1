package dev.edgebert.demo;

import android.annotation.TargetApi;
import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.os.BatteryManager;
import android.os.Build;
import android.os.Debug;
import android.os.PowerManager;
import dev.edgebert.core.measure.Device;
import dev.edgebert.core.measure.DeviceInfo;
import dev.edgebert.core.measure.DeviceKind;
import dev.edgebert.core.measure.DeviceState;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

/** This device, as far as an app without permissions can see it. */
final class AndroidDevice implements Device {
  private static final String[] THERMAL = {
    "none", "light", "moderate", "severe", "critical", "emergency", "shutdown"
  };
  private static final File PROCESSORS = new File("/sys/devices/system/cpu");

  private final DemoApp app;
  private final DeviceKind kind = kind();
  private volatile boolean leftForeground;

  AndroidDevice(DemoApp app) {
    this.app = app;
  }

  /** Tells that the app is no longer seen. */
  void leaveForeground() {
    leftForeground = true;
  }

  @Override
  public boolean leftForeground() {
    return leftForeground || !app.isSeen();
  }

  static DeviceKind kind() {
    Map<String, String> build = new LinkedHashMap<>();
    build.put("FINGERPRINT", Build.FINGERPRINT);
    build.put("HARDWARE", Build.HARDWARE);
    build.put("PRODUCT", Build.PRODUCT);
    build.put("DEVICE", Build.DEVICE);
    build.put("MODEL", Build.MODEL);
    build.put("BOARD", Build.BOARD);
    return DeviceKind.of(System.getProperty("java.vm.name"), build);
  }

  /** Processor of this device, as {@code uname -m} has it. */
  static String arch() {
    switch (Build.SUPPORTED_ABIS.length == 0 ? "" : Build.SUPPORTED_ABIS[0]) {
      case "arm64-v8a":
        return "aarch64";
      case "armeabi-v7a":
        return "armv7l";
      default:
        return Build.SUPPORTED_ABIS[0];
    }
  }

  @Override
  public DeviceInfo info() {
    int cores = Runtime.getRuntime().availableProcessors();
    if (kind == DeviceKind.HOST) { // what a test's framework says of a phone is made up
      String abi = System.getProperty("os.arch");
      String model = System.getProperty("os.name");
      return new DeviceInfo(kind, "host", model, null, abi, cores, null, null, null, null);
    }
    return new DeviceInfo(
        kind,
        Build.MANUFACTURER,
        Build.MODEL,
        Build.VERSION.SDK_INT >= 31 ? soc() : Build.HARDWARE,
        Build.SUPPORTED_ABIS[0],
        cores,
        Build.VERSION.RELEASE,
        Build.VERSION.SDK_INT,
        line(new File(PROCESSORS, "cpu0/cpufreq/scaling_governor")),
        maxMhz());
  }

  @Override
  public DeviceState state() {
    if (kind == DeviceKind.HOST) {
      return new DeviceState(null, null, null, null, null, null);
    }
    PowerManager power = (PowerManager) app.getSystemService(Context.POWER_SERVICE);
    Intent battery =
        app.registerReceiver(null, new IntentFilter(Intent.ACTION_BATTERY_CHANGED));
    Integer percent = null;
    Double celsius = null;
    Boolean charging = null;
    if (battery != null) {
      int level = battery.getIntExtra(BatteryManager.EXTRA_LEVEL, -1);
      int scale = battery.getIntExtra(BatteryManager.EXTRA_SCALE, 100);
      int tenths = battery.getIntExtra(BatteryManager.EXTRA_TEMPERATURE, Integer.MIN_VALUE);
      percent = level < 0 || scale <= 0 ? null : (Integer) (100 * level / scale);
      celsius = tenths == Integer.MIN_VALUE ? null : (Double) (tenths / 10.0);
      charging = battery.getIntExtra(BatteryManager.EXTRA_PLUGGED, 0) != 0;
    }
    long pssKb = Debug.getPss(); // in units of 1024 bytes
    return new DeviceState(
        Build.VERSION.SDK_INT >= 29 ? thermal(power) : null,
        percent,
        celsius,
        charging,
        power == null ? null : (Boolean) power.isPowerSaveMode(),
        pssKb <= 0 ? null : (Double) (pssKb * 1024 / 1e6));
  }

  @TargetApi(31)
  private static String soc() {
    return (Build.SOC_MANUFACTURER + " " + Build.SOC_MODEL).trim();
  }

  @TargetApi(29)
  private static String thermal(PowerManager power) {
    int status = power == null ? -1 : power.getCurrentThermalStatus();
    return status < 0 || status >= THERMAL.length ? null : THERMAL[status];
  }

  private static Integer maxMhz() {
    int highest = 0;
    for (int core = 0; core < 64; core++) {
      String kilohertz = line(new File(PROCESSORS, "cpu" + core + "/cpufreq/cpuinfo_max_freq"));
      if (kilohertz != null && kilohertz.matches("\\d{1,9}")) {
        highest = Math.max(highest, Integer.parseInt(kilohertz) / 1000);
      }
    }
    return highest == 0 ? null : (Integer) highest;
  }

  private static String line(File file) {
    try (BufferedReader reader = new BufferedReader(new FileReader(file))) {
      String line = reader.readLine();
      return line == null ? null : line.trim();
    } catch (IOException hidden) {
      return null;
    }
  }
}
