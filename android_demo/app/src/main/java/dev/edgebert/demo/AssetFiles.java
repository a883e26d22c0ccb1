package dev.edgebert.demo;

import android.content.res.AssetFileDescriptor;
import android.content.res.AssetManager;
import dev.edgebert.core.bundle.BundleFiles;
import dev.edgebert.core.bundle.BundleName;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** A bundle in the app's assets. Model files are stored in it as they are, and mapped. */
final class AssetFiles implements BundleFiles {
  /** Where bundles are in the assets. */
  static final String FOLDER = "bundles";

  private final AssetManager assets;
  private final String name;

  AssetFiles(AssetManager assets, String name) {
    this.assets = assets;
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public boolean has(String file) {
    try (InputStream stream = open(file)) {
      return true;
    } catch (IOException missing) {
      return false;
    }
  }

  @Override
  public InputStream open(String file) throws IOException {
    return assets.open(path(file));
  }

  @Override
  public ByteBuffer map(String file) throws IOException {
    try (AssetFileDescriptor asset = assets.openFd(path(file));
        FileInputStream stream = new FileInputStream(asset.getFileDescriptor())) {
      long start = asset.getStartOffset();
      return stream.getChannel().map(FileChannel.MapMode.READ_ONLY, start, asset.getLength());
    } catch (FileNotFoundException compressed) {
      return copy(file); // a small text file; the models are not compressed
    }
  }

  private ByteBuffer copy(String file) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    byte[] buffer = new byte[1 << 16];
    try (InputStream stream = open(file)) {
      for (int count = stream.read(buffer); count >= 0; count = stream.read(buffer)) {
        bytes.write(buffer, 0, count);
      }
    }
    ByteBuffer direct = ByteBuffer.allocateDirect(bytes.size());
    direct.put(bytes.toByteArray());
    direct.rewind();
    return direct;
  }

  private String path(String file) throws IOException {
    if (!BundleName.isPlain(name) || !BundleName.isPlain(file)) {
      throw new FileNotFoundException(file);
    }
    return FOLDER + "/" + name + "/" + file;
  }
}
