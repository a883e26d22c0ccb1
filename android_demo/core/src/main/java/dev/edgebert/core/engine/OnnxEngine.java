package dev.edgebert.core.engine;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import java.nio.ByteBuffer;

/** ONNX Runtime; the same Java API on Android and on a desktop's JVM. */
public final class OnnxEngine implements Engine {
  private final OrtEnvironment environment;

  /**
   * Loads the native library.
   *
   * @throws BundleException NO_ENGINE where there is none for this processor
   */
  public OnnxEngine() throws BundleException {
    try {
      environment = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_ERROR);
      environment.setTelemetry(false);
    } catch (LinkageError | OrtException | RuntimeException error) {
      throw new BundleException(Problem.NO_ENGINE, "onnxruntime", error);
    }
  }

  @Override
  public String format() {
    return "onnx";
  }

  @Override
  public String runtime() {
    return "onnxruntime " + environment.getVersion();
  }

  @Override
  public Session load(ByteBuffer model, int threads, int padId, boolean padsLeft)
      throws BundleException {
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      // The same settings as the bundle's run.py: what is measured is what ships.
      options.setIntraOpNumThreads(threads);
      options.setOptimizationLevel(OrtSession.SessionOptions.OptLevel.ALL_OPT);
      options.addConfigEntry("session.qdq_matmulnbits_accuracy_level", "4");
      OrtSession session = environment.createSession(model, options);
      return new OnnxSession(environment, session, padId, padsLeft);
    } catch (OrtException | RuntimeException error) {
      throw new BundleException(Problem.MODEL_REFUSED, firstLine(error), error);
    }
  }

  static String firstLine(Throwable error) {
    return String.valueOf(error.getMessage()).trim().split("\n", 2)[0];
  }
}
