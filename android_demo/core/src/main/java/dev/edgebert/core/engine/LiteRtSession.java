package dev.edgebert.core.engine;

import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import java.nio.FloatBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/** A .tflite model: one text at a time, padded to the shortest signature that fits. */
final class LiteRtSession implements Session {
  private final LiteRtApi api;
  private final Object interpreter;
  private final int padId;
  private final boolean padsLeft;

  /** Name of the signature by its token length. */
  private final TreeMap<Integer, String> signatures = new TreeMap<>();

  LiteRtSession(LiteRtApi api, Object interpreter, int padId, boolean padsLeft)
      throws ReflectiveOperationException {
    this.api = api;
    this.interpreter = interpreter;
    this.padId = padId;
    this.padsLeft = padsLeft;
    for (String signature : (String[]) api.getSignatureKeys.invoke(interpreter)) {
      signatures.put(length(signature), signature);
    }
  }

  /** Token length of a signature: in its name, since its input may be of any, else the input's. */
  private int length(String signature) throws ReflectiveOperationException {
    if (signature.matches("s\\d{1,9}")) {
      return Integer.parseInt(signature.substring(1));
    }
    Object tensor = api.getInputTensor.invoke(interpreter, "input_ids", signature);
    return ((int[]) api.shape.invoke(tensor))[1];
  }

  @Override
  public float[][] run(int[] ids, int[] typeIds) throws BundleException {
    Map.Entry<Integer, String> signature = signatures.ceilingEntry(ids.length);
    if (signature == null) {
      throw new BundleException(Problem.TOO_LARGE, Integer.toString(ids.length));
    }
    Row row = new Row(ids, typeIds, signature.getKey(), padId, padsLeft);
    try {
      return run(row, signature.getKey(), signature.getValue());
    } catch (ReflectiveOperationException error) {
      throw LiteRtEngine.refused(error);
    }
  }

  @Override
  public String padding() {
    String lengths = signatures.keySet().toString().replaceAll("[\\[\\]]", "");
    return (padsLeft ? "left" : "right") + ", to " + lengths + " tokens, batch 1";
  }

  private float[][] run(Row row, int length, String signature)
      throws ReflectiveOperationException, BundleException {
    Map<String, Object> feed = new HashMap<>();
    for (String name : (String[]) api.getSignatureInputs.invoke(interpreter, signature)) {
      Object tensor = api.getInputTensor.invoke(interpreter, name, signature);
      boolean wide = api.dataType.invoke(tensor).toString().equals("INT64");
      int[] values = row.values(name);
      if (values == null) {
        throw new BundleException(Problem.MODEL_REFUSED, name);
      }
      // One graph serves all lengths: it is resized to an array, and would not be to a buffer.
      feed.put(name, wide ? new long[][] {widen(values)} : new int[][] {values});
    }
    String output = ((String[]) api.getSignatureOutputs.invoke(interpreter, signature))[0];
    Object tensor = api.getOutputTensor.invoke(interpreter, output, signature);
    int[] shape = (int[]) api.shape.invoke(tensor);
    if (shape.length == 3) { // of tokens; it may not be resized yet
      shape[1] = length;
    }
    long[] wideShape = new long[shape.length];
    int size = 1;
    for (int axis = 0; axis < shape.length; axis++) {
      wideShape[axis] = shape[axis];
      size *= shape[axis];
    }
    FloatBuffer logits = FloatBuffer.allocate(size);
    Map<String, Object> results = new HashMap<>();
    results.put(output, logits);
    api.runSignature.invoke(interpreter, feed, results, signature);
    return row.logits(logits.array(), wideShape);
  }

  private static long[] widen(int[] values) {
    long[] wide = new long[values.length];
    for (int index = 0; index < values.length; index++) {
      wide[index] = values[index];
    }
    return wide;
  }

  @Override
  public void close() {
    try {
      api.close.invoke(interpreter);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
