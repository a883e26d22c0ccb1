package dev.edgebert.core.bundle;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;

/** The files of one bundle, wherever they lie: a folder, or the app's assets. */
public interface BundleFiles {
  /** Name of the bundle. */
  String name();

  /** Whether the file is there. */
  boolean has(String file);

  /** Opens a file; throws where it is missing. */
  InputStream open(String file) throws IOException;

  /** Maps a file into memory, outside the Java heap; throws over 2 GB. */
  ByteBuffer map(String file) throws IOException;
}
