package dev.edgebert.core.bundle;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import dev.edgebert.core.TestBundle;
import dev.edgebert.core.bundle.BundleException.Problem;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Bundles as they come: whole, damaged, foreign, hostile. */
public class BundleTest {
  private static final String[] FILES = {
    "manifest.json", "tokenizer.json", "golden.jsonl", "model.onnx"
  };

  @Rule public final TemporaryFolder temporary = new TemporaryFolder();

  @Test
  public void theShippedBundleIsRead() throws Exception {
    Bundle bundle = Bundle.open(new FolderFiles(TestBundle.folder()));
    assertEquals("albert", bundle.manifest().model);
    assertEquals("aarch64", bundle.manifest().arch);
    assertEquals(151, bundle.manifest().labels.size());
    assertEquals(32, bundle.manifest().measuredLength);
    List<GoldenRow> rows = bundle.golden("onnx");
    assertTrue(rows.size() > 20);
    assertEquals(151, rows.get(0).expected[0].length);
    assertEquals(TestBundle.folder().toPath().resolve("model.onnx").toFile().length(),
        bundle.map("model.onnx").remaining());
  }

  @Test
  public void whatIsNoBundleIsRefused() {
    assertEquals(Problem.MISSING, problemOf(new File(temporary.getRoot(), "nowhere")));
    for (String text : new String[] {"", "[]", "{", "{\"schema_version\": \"1\"}", "\u0000"}) {
      assertEquals(text, Problem.NOT_A_BUNDLE, problemOf(folderWith(text)));
    }
    assertEquals(Problem.NEWER_FORMAT, problemOf(folderWith("{\"schema_version\": 2}")));
  }

  @Test
  public void aNestedManifestEndsInAnError() {
    StringBuilder deep = new StringBuilder("{\"schema_version\":");
    for (int depth = 0; depth < 200_000; depth++) {
      deep.append('[');
    }
    assertEquals(Problem.NOT_A_BUNDLE, problemOf(folderWith(deep.toString())));
  }

  @Test
  public void aPathInAManifestIsNoFile() throws Exception {
    FolderFiles files = new FolderFiles(TestBundle.folder());
    assertThrows(IOException.class, () -> files.open("../bundle/manifest.json"));
    assertThrows(IOException.class, () -> files.map("/etc/passwd"));
    assertThrows(IOException.class, () -> files.open(".hidden"));
  }

  @Test
  public void anArchiveIsInstalledWhole() throws Exception {
    File bundles = temporary.newFolder("bundles");
    try (BundleInstaller installer = new BundleInstaller(bundles, "picked")) {
      installer.addZip(zip("some/folder/", null));
      installer.finish();
    }
    assertEquals(1, bundles.list().length);
    Bundle.open(new FolderFiles(new File(bundles, "picked"))).map("model.onnx");
  }

  @Test
  public void aDamagedArchiveLeavesNothing() throws Exception {
    File bundles = temporary.newFolder("bundles");
    try (BundleInstaller installer = new BundleInstaller(bundles, "picked")) {
      installer.addZip(zip("", "model.onnx"));
      BundleException error = assertThrows(BundleException.class, installer::finish);
      assertEquals(Problem.DAMAGED, error.problem());
      assertEquals("model.onnx", error.subject());
    }
    assertEquals(0, bundles.list().length);
  }

  @Test
  public void aFullDeviceIsToldBeforeItIsFull() throws Exception {
    File bundles = temporary.newFolder("bundles");
    try (BundleInstaller installer = new BundleInstaller(bundles, "picked", Long.MAX_VALUE)) {
      BundleException error =
          assertThrows(BundleException.class, () -> installer.addZip(zip("", null)));
      assertEquals(Problem.NO_SPACE, error.problem());
    }
    assertEquals(0, bundles.list().length);
  }

  @Test
  public void anArchiveCannotWriteElsewhere() throws Exception {
    File bundles = temporary.newFolder("bundles");
    try (BundleInstaller installer = new BundleInstaller(bundles, "picked")) {
      installer.addZip(zip("../../", null));
      assertEquals(1, bundles.list().length);
      assertEquals(1, temporary.getRoot().list().length);
    }
    assertThrows(BundleException.class, () -> new BundleInstaller(bundles, "../x"));
  }

  private static Problem problemOf(File folder) {
    FolderFiles files = new FolderFiles(folder);
    return assertThrows(BundleException.class, () -> Bundle.open(files)).problem();
  }

  private File folderWith(String manifest) {
    try {
      File folder = temporary.newFolder();
      Files.write(new File(folder, "manifest.json").toPath(), manifest.getBytes("UTF-8"));
      return folder;
    } catch (IOException error) {
      throw new AssertionError(error);
    }
  }

  /** The shipped bundle as an archive, with one file changed where {@code damaged} names it. */
  private static ByteArrayInputStream zip(String prefix, String damaged) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ZipOutputStream zip = new ZipOutputStream(bytes, StandardCharsets.UTF_8)) {
      for (String file : FILES) {
        byte[] content = Files.readAllBytes(TestBundle.folder().toPath().resolve(file));
        content[content.length / 2] ^= (byte) (file.equals(damaged) ? 1 : 0);
        zip.putNextEntry(new ZipEntry(prefix + file));
        zip.write(content);
      }
    }
    return new ByteArrayInputStream(bytes.toByteArray());
  }
}
