package dev.edgebert.demo;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;

import android.app.Activity;
import android.content.Intent;
import android.net.Uri;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.nio.file.Files;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.Test;
import org.robolectric.Robolectric;
import org.robolectric.Shadows;
import org.robolectric.shadows.ShadowActivity;

/** An archive from the system's file picker. */
public class PickTest extends ScreenTest {
  private static final Uri PICKED = Uri.parse("content://somewhere/bundle.zip");

  @Test
  public void anArchiveIsCopiedCheckedAndChosen() throws Exception {
    BundlesActivity screen = pick(zip("manifest.json", "tokenizer.json", "model.onnx"));
    Waiting.until(() -> text(screen, R.id.message).contains("ready"));
    assertEquals("bundle", app().bundles().chosen());
    assertEquals(R.string.from_picker, app().bundles().origin("bundle"));
    assertEquals("albert", app().bundles().open("bundle").manifest().model);
  }

  @Test
  public void anArchiveOfSomethingElseIsRefused() throws Exception {
    BundlesActivity screen = pick(zip("model.onnx"));
    String refused = app().getString(R.string.problem_not_a_bundle, "bundle");
    Waiting.until(() -> text(screen, R.id.message).equals(refused));
    assertEquals(BUNDLE, app().bundles().chosen());
    assertEquals(0, app().bundles().picked().list().length);
  }

  @Test
  public void nothingPickedChangesNothing() {
    BundlesActivity screen = Robolectric.setupActivity(BundlesActivity.class);
    screen.findViewById(R.id.pick_folder).performClick();
    ShadowActivity shadow = Shadows.shadowOf(screen);
    Intent asked = shadow.getNextStartedActivityForResult().intent;
    assertEquals(Intent.ACTION_OPEN_DOCUMENT_TREE, asked.getAction());
    shadow.receiveResult(asked, Activity.RESULT_CANCELED, null);
    assertEquals("", text(screen, R.id.message));
    assertNull(app().bundles().picked().list());
  }

  private BundlesActivity pick(byte[] archive) {
    Shadows.shadowOf(app().getContentResolver())
        .registerInputStreamSupplier(PICKED, () -> new ByteArrayInputStream(archive));
    BundlesActivity screen = Robolectric.setupActivity(BundlesActivity.class);
    screen.findViewById(R.id.pick_zip).performClick();
    ShadowActivity shadow = Shadows.shadowOf(screen);
    Intent asked = shadow.getNextStartedActivityForResult().intent;
    shadow.receiveResult(asked, Activity.RESULT_OK, new Intent().setData(PICKED));
    return screen;
  }

  private static byte[] zip(String... files) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
      for (String file : files) {
        zip.putNextEntry(new ZipEntry("albert-android-arm64/" + file));
        File from = new File(System.getProperty("bundle.dir"), file);
        zip.write(Files.readAllBytes(from.toPath()));
      }
    }
    return bytes.toByteArray();
  }
}
