package dev.edgebert.core.engine;

import dev.edgebert.core.bundle.BundleException;
import java.nio.ByteBuffer;

/** A runtime that runs model files of one format. */
public interface Engine {
  /** The format: {@code onnx} or {@code tflite}, as in the manifest. */
  String format();

  /** Name and version of the runtime: {@code onnxruntime 1.29.0}. */
  String runtime();

  /**
   * Loads a model.
   *
   * @param model the file, mapped; it stays in use as long as the session
   * @param threads of one inference
   * @param padId token id of padding
   * @param padsLeft true where padding goes before the text
   * @throws BundleException MODEL_REFUSED
   */
  Session load(ByteBuffer model, int threads, int padId, boolean padsLeft) throws BundleException;
}
