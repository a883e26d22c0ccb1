package dev.edgebert.core.measure;

import java.util.Locale;
import java.util.Map;

/** What figures were made on. Only a phone's may be called a phone's. */
public enum DeviceKind {
  PHONE,
  EMULATOR,
  /** A test on a desktop machine. */
  HOST;

  /** Words in an emulator's build properties (goldfish and ranchu are QEMU's boards). */
  private static final String[] EMULATOR_WORDS = {
    "goldfish", "ranchu", "sdk_gphone", "emulator", "google_sdk", "vbox", "genymotion", "cuttlefish",
    "vsoc", "generic_x86", "generic/", "robolectric", "cutf_cvm", "bluestacks", "nox"
  };

  /**
   * Tells a phone from what is none; in doubt it is none.
   *
   * @param virtualMachine the system property {@code java.vm.name}: Dalvik on every Android
   * @param build fields of {@code android.os.Build} by name
   */
  public static DeviceKind of(String virtualMachine, Map<String, String> build) {
    if (!"Dalvik".equals(virtualMachine)) {
      return HOST;
    }
    for (String value : build.values()) {
      String text = String.valueOf(value).toLowerCase(Locale.ROOT);
      for (String word : EMULATOR_WORDS) {
        if (text.contains(word)) {
          return EMULATOR;
        }
      }
    }
    return PHONE;
  }

  /** As the schema has it. */
  public String json() {
    return name().toLowerCase(Locale.ROOT);
  }
}
