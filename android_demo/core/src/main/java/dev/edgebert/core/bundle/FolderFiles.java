package dev.edgebert.core.bundle;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** A bundle in a folder. */
public final class FolderFiles implements BundleFiles {
  private final File folder;

  public FolderFiles(File folder) {
    this.folder = folder;
  }

  @Override
  public String name() {
    return folder.getName();
  }

  @Override
  public boolean has(String file) {
    return BundleName.isPlain(file) && new File(folder, file).isFile();
  }

  @Override
  public InputStream open(String file) throws IOException {
    return new FileInputStream(find(file));
  }

  @Override
  public ByteBuffer map(String file) throws IOException {
    try (FileInputStream stream = new FileInputStream(find(file))) {
      FileChannel channel = stream.getChannel();
      if (channel.size() > Integer.MAX_VALUE) {
        throw new IOException(file + " is larger than 2 GB");
      }
      return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
    }
  }

  private File find(String file) throws IOException {
    if (!BundleName.isPlain(file)) {
      throw new IOException("not a file of a bundle: " + file);
    }
    return new File(folder, file);
  }
}
