package dev.edgebert.core.bundle;

/** One model file, as the manifest describes it. */
public final class ModelEntry {
  /** {@code onnx} or {@code tflite}. */
  public final String format;

  public final String file;

  /** How it was quantized. */
  public final String scheme;

  /** Tokens that a text is cut to. */
  public final int maxLength;

  /** Largest difference of a logit from its golden value. */
  public final double goldenTolerance;

  /** Lowest version of the runtime: digits and dots. */
  public final String minimumRuntime;

  ModelEntry(Fields fields) throws BundleException {
    format = fields.text("format");
    file = BundleName.check(fields.text("file"));
    scheme = fields.text("scheme");
    maxLength = fields.integer("max_length", 1, 1 << 20);
    goldenTolerance = fields.number("golden_tolerance");
    String minimum = fields.text("minimum_runtime");
    minimumRuntime = minimum.substring(minimum.lastIndexOf(' ') + 1);
    if (!fields.list("external_data").isEmpty()) {
      throw new BundleException(BundleException.Problem.TOO_LARGE, file);
    }
  }
}
