package dev.edgebert.core.bundle;

import dev.edgebert.core.bundle.BundleException.Problem;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

/** Copies a bundle that somebody picked into the app's folder: all of it, checked, or nothing. */
public final class BundleInstaller implements AutoCloseable {
  private static final String PARTIAL = ".partial";

  /** Kept free, so that the phone goes on working. */
  private static final long RESERVE_BYTES = 64L << 20;

  private static final int MOST_FILES = 1000;

  private final File partial;
  private final File folder;
  private final long reserveBytes;
  private int files;

  /**
   * @param bundles the folder that bundles are in
   * @param name of the new one; an older one of that name is replaced when this one is complete
   * @throws BundleException BAD_NAME, UNREADABLE
   */
  public BundleInstaller(File bundles, String name) throws BundleException {
    this(bundles, name, RESERVE_BYTES);
  }

  BundleInstaller(File bundles, String name, long reserveBytes) throws BundleException {
    this.reserveBytes = reserveBytes;
    folder = new File(bundles, BundleName.check(name));
    partial = new File(bundles, "." + name + PARTIAL);
    delete(partial);
    if (!partial.mkdirs()) {
      throw new BundleException(Problem.UNREADABLE, bundles.getName());
    }
  }

  /** Copies all files of an archive; folders in it do not count. */
  public void addZip(InputStream stream) throws BundleException {
    try (ZipInputStream zip = new ZipInputStream(stream)) {
      for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
        String file = entry.getName().substring(entry.getName().lastIndexOf('/') + 1);
        // "../x" becomes x, and what no bundle has (.DS_Store) is left out.
        if (!entry.isDirectory() && BundleName.isPlain(file)) {
          add(file, zip);
        }
      }
    } catch (IOException | IllegalArgumentException error) {
      throw new BundleException(Problem.NOT_A_BUNDLE, folder.getName(), error);
    }
  }

  /**
   * Copies one file; the stream stays open.
   *
   * @throws BundleException NO_SPACE, UNREADABLE, BAD_NAME, NOT_A_BUNDLE (too many, or one twice)
   */
  public void add(String name, InputStream stream) throws BundleException {
    File file = new File(partial, BundleName.check(name));
    if (file.exists() || ++files > MOST_FILES) {
      throw new BundleException(Problem.NOT_A_BUNDLE, folder.getName());
    }
    byte[] buffer = new byte[1 << 16];
    try (FileOutputStream out = new FileOutputStream(file)) {
      for (int count = stream.read(buffer); count >= 0; count = stream.read(buffer)) {
        if (partial.getUsableSpace() - count < reserveBytes) {
          throw new BundleException(Problem.NO_SPACE, folder.getName());
        }
        out.write(buffer, 0, count);
      }
      out.getFD().sync();
    } catch (IOException error) {
      throw new BundleException(Problem.UNREADABLE, name, error);
    }
  }

  /**
   * Checks every file that the manifest lists and that was copied, and puts the bundle in its place.
   *
   * @throws BundleException NOT_A_BUNDLE, NEWER_FORMAT, DAMAGED, UNREADABLE
   */
  public void finish() throws BundleException {
    if (!new File(partial, Bundle.MANIFEST).isFile()) {
      throw new BundleException(Problem.NOT_A_BUNDLE, folder.getName());
    }
    Bundle bundle = Bundle.open(new FolderFiles(partial));
    for (String file : bundle.manifest().files.keySet()) {
      if (bundle.has(file)) {
        bundle.map(file);
      }
    }
    delete(folder);
    if (!partial.renameTo(folder)) {
      throw new BundleException(Problem.UNREADABLE, folder.getName());
    }
  }

  /** Removes what is not finished. */
  @Override
  public void close() {
    delete(partial);
  }

  /** Removes what an installation left that was ended in its middle. */
  public static void clean(File bundles) {
    File[] found = bundles.listFiles();
    for (File file : found == null ? new File[0] : found) {
      if (file.getName().endsWith(PARTIAL)) {
        delete(file);
      }
    }
  }

  private static void delete(File file) {
    File[] inside = file.listFiles();
    for (File one : inside == null ? new File[0] : inside) {
      delete(one);
    }
    file.delete();
  }
}
