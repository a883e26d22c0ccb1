package dev.edgebert.core.bundle;

import dev.edgebert.core.bundle.BundleException.Problem;
import dev.edgebert.core.text.Tokenizer;
import dev.edgebert.core.text.TokenizerException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.List;

/** A bundle whose manifest was read; each file is held to its checksum when it is opened. */
public final class Bundle {
  public static final String MANIFEST = "manifest.json";
  public static final String TOKENIZER = "tokenizer.json";
  public static final String GOLDEN = "golden.jsonl";

  /** Texts whose logits somebody asks for, put beside the bundle's own files. */
  public static final String ROWS = "rows.jsonl";

  /** The file that a quantized ONNX file is compared with, where somebody put it there. */
  public static final String FP32 = "model.fp32.onnx";

  private static final int MAX_MANIFEST_BYTES = 16 << 20;

  private final BundleFiles files;
  private final Manifest manifest;

  private Bundle(BundleFiles files, Manifest manifest) {
    this.files = files;
    this.manifest = manifest;
  }

  /**
   * Reads the manifest of a bundle.
   *
   * @throws BundleException MISSING, NOT_A_BUNDLE, NEWER_FORMAT, UNREADABLE
   */
  public static Bundle open(BundleFiles files) throws BundleException {
    try (InputStream stream = files.open(MANIFEST)) {
      byte[] bytes = readAll(stream, MAX_MANIFEST_BYTES);
      return new Bundle(files, Manifest.read(files.name(), bytes));
    } catch (FileNotFoundException error) {
      throw new BundleException(Problem.MISSING, files.name(), error);
    } catch (IOException error) {
      throw new BundleException(Problem.UNREADABLE, files.name(), error);
    }
  }

  public String name() {
    return files.name();
  }

  public Manifest manifest() {
    return manifest;
  }

  public boolean has(String file) {
    return files.has(file);
  }

  /**
   * Maps a file that the manifest lists; what is mapped is what was checked.
   *
   * @throws BundleException DAMAGED, UNREADABLE
   */
  public ByteBuffer map(String file) throws BundleException {
    ByteBuffer bytes = mapUnlisted(file);
    if (!Checksum.sha256(bytes).equals(manifest.files.get(file))) {
      throw new BundleException(Problem.DAMAGED, file);
    }
    return bytes;
  }

  /** Maps a file that the manifest does not list: the fp32 model that somebody put beside it. */
  public ByteBuffer mapUnlisted(String file) throws BundleException {
    if (!files.has(file)) {
      throw new BundleException(Problem.DAMAGED, file);
    }
    try {
      return files.map(file);
    } catch (IOException error) {
      throw new BundleException(Problem.UNREADABLE, file, error);
    }
  }

  /**
   * Reads the tokenizer.
   *
   * @throws BundleException DAMAGED, UNREADABLE, TOKENIZER_REFUSED
   */
  public Tokenizer tokenizer() throws BundleException {
    ByteBuffer bytes = map(TOKENIZER);
    byte[] copy = new byte[bytes.remaining()];
    bytes.get(copy);
    try {
      return Tokenizer.load(new ByteArrayInputStream(copy));
    } catch (TokenizerException error) {
      throw new BundleException(Problem.TOKENIZER_REFUSED, error.getMessage(), error);
    }
  }

  /**
   * Reads the golden rows of a model file, after their checksum.
   *
   * @throws BundleException DAMAGED, UNREADABLE, NOT_A_BUNDLE
   */
  public List<GoldenRow> golden(String format) throws BundleException {
    map(GOLDEN);
    return GoldenRow.read(files, format);
  }

  /**
   * Reads the texts that a run is asked for; the manifest does not list them.
   *
   * @throws BundleException UNREADABLE, NOT_A_BUNDLE
   */
  public List<TextRow> rows() throws BundleException {
    return JsonLines.read(files, ROWS, TextRow::new);
  }

  private static byte[] readAll(InputStream stream, int limit) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    byte[] buffer = new byte[1 << 14];
    for (int count = stream.read(buffer); count >= 0; count = stream.read(buffer)) {
      bytes.write(buffer, 0, count);
      if (bytes.size() > limit) {
        throw new IOException("larger than " + limit + " bytes");
      }
    }
    return bytes.toByteArray();
  }
}
