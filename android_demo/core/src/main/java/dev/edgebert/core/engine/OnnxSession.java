package dev.edgebert.core.engine;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.LinkedHashMap;
import java.util.Map;

/** An ONNX model: one text at a time, not padded. */
final class OnnxSession implements Session {
  private final OrtEnvironment environment;
  private final OrtSession session;
  private final int padId;
  private final boolean padsLeft;
  private final Map<String, OnnxJavaType> inputs = new LinkedHashMap<>();

  OnnxSession(OrtEnvironment environment, OrtSession session, int padId, boolean padsLeft)
      throws OrtException {
    this.environment = environment;
    this.session = session;
    this.padId = padId;
    this.padsLeft = padsLeft;
    for (String name : session.getInputNames()) {
      inputs.put(name, ((TensorInfo) session.getInputInfo().get(name).getInfo()).type);
    }
  }

  @Override
  public float[][] run(int[] ids, int[] typeIds) throws BundleException {
    // A text without any token is a row of one padding token.
    Row row = new Row(ids, typeIds, Math.max(ids.length, 1), padId, padsLeft);
    Map<String, OnnxTensor> feed = new LinkedHashMap<>();
    try {
      for (Map.Entry<String, OnnxJavaType> input : inputs.entrySet()) {
        feed.put(input.getKey(), tensor(row, input.getKey(), input.getValue()));
      }
      try (OrtSession.Result result = session.run(feed)) {
        OnnxTensor output = (OnnxTensor) result.get(0);
        FloatBuffer buffer = output.getFloatBuffer();
        float[] flat = new float[buffer.remaining()];
        buffer.get(flat);
        return row.logits(flat, output.getInfo().getShape());
      }
    } catch (OrtException | RuntimeException error) {
      throw new BundleException(Problem.MODEL_REFUSED, OnnxEngine.firstLine(error), error);
    } finally {
      for (OnnxTensor tensor : feed.values()) {
        tensor.close();
      }
    }
  }

  @Override
  public String padding() {
    return "none, batch 1";
  }

  private OnnxTensor tensor(Row row, String name, OnnxJavaType type) throws OrtException {
    int[] values = row.values(name);
    if (values == null) {
      throw new IllegalArgumentException("an input that nothing feeds: " + name);
    }
    long[] shape = {1, row.length};
    if (type == OnnxJavaType.INT32) {
      return OnnxTensor.createTensor(environment, IntBuffer.wrap(values), shape);
    }
    long[] wide = new long[values.length];
    for (int index = 0; index < wide.length; index++) {
      wide[index] = values[index];
    }
    return OnnxTensor.createTensor(environment, LongBuffer.wrap(wide), shape);
  }

  @Override
  public void close() {
    try {
      session.close();
    } catch (OrtException error) {
      throw new IllegalStateException(error);
    }
  }
}
