package dev.edgebert.core.bundle;

import dev.edgebert.core.bundle.BundleException.Problem;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What manifest.json says, as far as the app needs it. */
public final class Manifest {
  /** The version of the manifest that this app reads. */
  public static final int SCHEMA_VERSION = 1;

  private static final List<String> TASKS =
      Arrays.asList("single_label", "multi_label", "regression", "token");

  /** SHA-256 of manifest.json itself, and so of all that it describes. */
  public final String sha256;

  public final String model;
  public final String target;

  /** Processor that it was built for, as {@code uname -m} has it. */
  public final String arch;

  /** Threads that the target runs with. */
  public final int threads;

  /** Token length that is measured: the target's shortest. */
  public final int measuredLength;

  /** {@code single_label}, {@code multi_label}, {@code regression} or {@code token}. */
  public final String task;

  /** In the order of their ids. */
  public final List<String> labels;

  public final int padId;
  public final boolean padsLeft;

  /** Whether the build's gates held; null where it was built without proof. */
  public final Boolean passed;

  /** SHA-256 by file name. */
  public final Map<String, String> files;

  public final List<ModelEntry> models;

  /** "license: attribution", a line each. */
  public final List<String> attributions;

  private Manifest(String sha256, Fields fields) throws BundleException {
    this.sha256 = sha256;
    if (fields.integer("schema_version", 0, Integer.MAX_VALUE) > SCHEMA_VERSION) {
      throw new BundleException(Problem.NEWER_FORMAT, fields.where());
    }
    model = fields.text("model");
    task = fields.text("task");
    labels = fields.texts("labels");
    padId = fields.integer("pad_id", 0, Integer.MAX_VALUE);
    padsLeft = fields.flag("pads_left");
    passed = fields.has("passed") ? (Boolean) fields.flag("passed") : null;
    Fields device = fields.object("target");
    target = device.text("name");
    arch = device.text("arch");
    threads = device.integer("threads", 1, 64);
    measuredLength = device.smallest("lengths");
    Map<String, String> sums = new LinkedHashMap<>();
    Fields listed = fields.object("files");
    for (String file : listed.names()) {
      sums.put(BundleName.check(file), listed.object(file).text("sha256"));
    }
    files = Collections.unmodifiableMap(sums);
    List<ModelEntry> entries = new ArrayList<>();
    Fields formats = fields.object("models");
    for (String format : formats.names()) {
      entries.add(new ModelEntry(formats.object(format)));
    }
    models = Collections.unmodifiableList(entries);
    List<String> lines = new ArrayList<>();
    for (Fields line : fields.objects("attributions")) {
      lines.add(line.text("license") + ": " + line.text("attribution"));
    }
    attributions = Collections.unmodifiableList(lines);
    if (!TASKS.contains(task) || models.isEmpty()) {
      throw new BundleException(Problem.NOT_A_BUNDLE, fields.where());
    }
  }

  /**
   * Reads a manifest.
   *
   * @param name of the bundle, for errors
   * @param bytes of manifest.json
   * @throws BundleException NOT_A_BUNDLE, NEWER_FORMAT or TOO_LARGE
   */
  public static Manifest read(String name, byte[] bytes) throws BundleException {
    String text = new String(bytes, StandardCharsets.UTF_8);
    return new Manifest(Checksum.sha256(ByteBuffer.wrap(bytes)), Fields.parse(name, text));
  }
}
