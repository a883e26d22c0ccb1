package dev.edgebert.core.engine;

import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;

/** LiteRT, where its library is in the app. */
public final class LiteRtEngine implements Engine {
  private final LiteRtApi api;
  private final String version;

  /**
   * @param loader where the library's classes are looked for
   * @throws BundleException NO_ENGINE where they are not there
   */
  public LiteRtEngine(ClassLoader loader) throws BundleException {
    try {
      api = new LiteRtApi(loader);
      version = (String) api.runtimeVersion.invoke(null);
    } catch (ReflectiveOperationException | LinkageError error) {
      throw new BundleException(Problem.NO_ENGINE, "LiteRT", error);
    }
  }

  @Override
  public String format() {
    return "tflite";
  }

  @Override
  public String runtime() {
    return "LiteRT " + version;
  }

  @Override
  public Session load(ByteBuffer model, int threads, int padId, boolean padsLeft)
      throws BundleException {
    try {
      Object options = api.newOptions.newInstance();
      api.setNumThreads.invoke(options, threads);
      Object interpreter = api.newInterpreter.newInstance(model, options);
      return new LiteRtSession(api, interpreter, padId, padsLeft);
    } catch (ReflectiveOperationException error) {
      throw refused(error);
    }
  }

  static BundleException refused(ReflectiveOperationException error) {
    Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
    return new BundleException(Problem.MODEL_REFUSED, OnnxEngine.firstLine(cause), cause);
  }
}
