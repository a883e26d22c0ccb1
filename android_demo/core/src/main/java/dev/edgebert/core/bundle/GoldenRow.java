package dev.edgebert.core.bundle;

import java.util.List;

/**
 * One line of golden.jsonl: a text with the token ids and logits by which a device proves itself.
 */
public final class GoldenRow {
  public final String text;

  /** Null for a single text. */
  public final String textPair;

  public final int maxLength;
  public final int[] ids;
  public final int[] typeIds;

  /** What the reference says: one label, or one a token. */
  public final List<String> labels;

  /** Logits of the fp32 checkpoint, [rows][labels]; one row for a text, one a token for tags. */
  public final float[][] reference;

  /** Logits that this model file must give, of the same shape. */
  public final float[][] expected;

  private GoldenRow(Fields fields, String format) throws BundleException {
    text = fields.text("text");
    textPair = fields.has("text_pair") ? fields.text("text_pair") : null;
    maxLength = fields.integer("max_length", 1, 1 << 20);
    ids = fields.integers("ids");
    typeIds = fields.integers("type_ids");
    labels = fields.texts("labels");
    reference = matrix(fields, "reference");
    expected = matrix(fields, format);
  }

  /**
   * Reads the golden rows of one model file.
   *
   * @param format {@code onnx} or {@code tflite}
   * @throws BundleException UNREADABLE or NOT_A_BUNDLE
   */
  public static List<GoldenRow> read(BundleFiles files, String format) throws BundleException {
    return JsonLines.read(files, Bundle.GOLDEN, fields -> new GoldenRow(fields, format));
  }

  private static float[][] matrix(Fields fields, String name) throws BundleException {
    List<?> list = fields.list(name);
    boolean nested = !list.isEmpty() && list.get(0) instanceof List;
    float[][] rows = new float[nested ? list.size() : 1][];
    for (int row = 0; row < rows.length; row++) {
      List<?> values = nested ? (List<?>) list.get(row) : list;
      rows[row] = new float[values.size()];
      for (int column = 0; column < rows[row].length; column++) {
        Object value = values.get(column); // null: a logit that was no number
        rows[row][column] = value == null ? Float.NaN : ((Number) value).floatValue();
      }
    }
    return rows;
  }
}
