package dev.edgebert.core.engine;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Map;

/**
 * The part of {@code org.tensorflow.lite} that the app calls, looked up by name, so that the app
 * builds and runs without it. {@code com.google.ai.edge.litert:litert} 1.x and {@code
 * org.tensorflow:tensorflow-lite} both have it.
 */
final class LiteRtApi {
  final Method runtimeVersion;
  final Constructor<?> newOptions;
  final Method setNumThreads;
  final Constructor<?> newInterpreter;
  final Method getSignatureKeys;
  final Method getSignatureInputs;
  final Method getSignatureOutputs;
  final Method getInputTensor;
  final Method getOutputTensor;
  final Method runSignature;
  final Method close;
  final Method shape;
  final Method dataType;

  /** Finds the classes and methods; throws where the library is missing or another. */
  LiteRtApi(ClassLoader loader) throws ReflectiveOperationException {
    Class<?> library = find("TensorFlowLite", loader);
    Class<?> interpreter = find("Interpreter", loader);
    Class<?> options = find("Interpreter$Options", loader);
    Class<?> tensor = find("Tensor", loader);
    runtimeVersion = library.getMethod("runtimeVersion");
    newOptions = options.getConstructor();
    setNumThreads = options.getMethod("setNumThreads", int.class);
    newInterpreter = interpreter.getConstructor(ByteBuffer.class, options);
    getSignatureKeys = interpreter.getMethod("getSignatureKeys");
    getSignatureInputs = interpreter.getMethod("getSignatureInputs", String.class);
    getSignatureOutputs = interpreter.getMethod("getSignatureOutputs", String.class);
    getInputTensor =
        interpreter.getMethod("getInputTensorFromSignature", String.class, String.class);
    getOutputTensor =
        interpreter.getMethod("getOutputTensorFromSignature", String.class, String.class);
    runSignature = interpreter.getMethod("runSignature", Map.class, Map.class, String.class);
    close = interpreter.getMethod("close");
    shape = tensor.getMethod("shape");
    dataType = tensor.getMethod("dataType");
  }

  private static Class<?> find(String name, ClassLoader loader) throws ClassNotFoundException {
    return Class.forName("org.tensorflow.lite." + name, false, loader);
  }
}
