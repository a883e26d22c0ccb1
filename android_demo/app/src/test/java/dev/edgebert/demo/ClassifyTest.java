package dev.edgebert.demo;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.graphics.Insets;
import android.view.ViewGroup;
import android.view.WindowInsets;
import android.widget.EditText;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.Test;
import org.robolectric.Robolectric;
import org.robolectric.android.controller.ActivityController;

/** What somebody types, and bundles that cannot be used. */
public class ClassifyTest extends ScreenTest {
  @Test
  public void nothingTypedIsSaidSo() throws Exception {
    MainActivity screen = Robolectric.setupActivity(MainActivity.class);
    type(screen, "   \n ");
    Waiting.until(() -> message(screen).equals(app().getString(R.string.nothing_typed)));
    assertEquals(0, screen.<ViewGroup>findViewById(R.id.answers).getChildCount());
  }

  @Test
  public void aVeryLongTextIsCutAndClassified() throws Exception {
    MainActivity screen = Robolectric.setupActivity(MainActivity.class);
    StringBuilder text = new StringBuilder();
    while (text.length() < 2 * Texts.MOST_CHARACTERS) {
      text.append("transfer money \uD83D\uDC4D ");
    }
    type(screen, text.toString());
    Waiting.until(() -> screen.<ViewGroup>findViewById(R.id.answers).getChildCount() == 5);
    assertEquals(Texts.MOST_CHARACTERS, screen.<EditText>findViewById(R.id.text).length());
    assertTrue(message(screen), message(screen).contains("100,000"));
  }

  @Test
  public void turningThePhoneKeepsTheText() throws Exception {
    ActivityController<MainActivity> controller =
        Robolectric.buildActivity(MainActivity.class).setup();
    type(controller.get(), "play some jazz");
    Waiting.until(() -> "play some jazz".equals(app().texts().text()));
    controller.recreate();
    assertEquals("play some jazz", text(controller.get(), R.id.text));
  }

  @Test
  public void aDamagedBundleIsRefused() throws Exception {
    Path folder = push("damaged");
    byte[] model = Files.readAllBytes(folder.resolve("model.onnx"));
    model[model.length / 2] ^= 1;
    Files.write(folder.resolve("model.onnx"), model);
    assertRefused("damaged", R.string.problem_damaged, "model.onnx");
  }

  @Test
  public void aForeignFolderIsRefused() throws Exception {
    Path folder = push("foreign");
    Files.write(folder.resolve("manifest.json"), "{\"name\": \"a web app\"}".getBytes());
    assertRefused("foreign", R.string.problem_not_a_bundle, "foreign, schema_version");
  }

  @Test
  public void aBundleForANewerRuntimeIsRefused() throws Exception {
    Path folder = push("newer");
    replace(folder, "\"onnxruntime 1.17\"", "\"onnxruntime 9.1\"");
    assertRefused("newer", R.string.problem_old_runtime, "onnxruntime 1.29.0 < 9.1");
  }

  @Test
  public void aBundleOfAnotherProcessorSaysSo() throws Exception {
    Path folder = push("other");
    replace(folder, "\"aarch64\"", "\"riscv64\"");
    BundlesActivity screen = Robolectric.setupActivity(BundlesActivity.class);
    ViewGroup list = screen.findViewById(R.id.list);
    assertEquals(2, list.getChildCount());
    String warning = app().getString(R.string.other_arch, "riscv64", AndroidDevice.arch());
    android.widget.TextView shown = list.getChildAt(0).findViewById(R.id.warning);
    assertEquals(warning, shown.getText().toString());
  }

  @Test
  public void contentKeepsAwayFromTheBarsAndTheKeyboard() {
    MainActivity screen = Robolectric.setupActivity(MainActivity.class);
    WindowInsets insets =
        new WindowInsets.Builder()
            .setInsets(WindowInsets.Type.systemBars(), Insets.of(0, 80, 0, 60))
            .setInsets(WindowInsets.Type.ime(), Insets.of(0, 0, 0, 500))
            .build();
    screen.findViewById(R.id.screen).dispatchApplyWindowInsets(insets);
    assertEquals(80, screen.findViewById(R.id.screen).getPaddingTop());
    assertEquals(440, screen.findViewById(R.id.screen).getPaddingBottom());
    assertEquals(60, screen.findViewById(R.id.navigation).getPaddingBottom());
  }

  private void assertRefused(String name, int message, String subject) throws Exception {
    app().bundles().choose(name);
    MainActivity screen = Robolectric.setupActivity(MainActivity.class);
    String expected = app().getString(message, subject);
    Waiting.until(() -> app().texts().shown() != null);
    assertEquals(expected, message(screen));
  }

  private static void replace(Path folder, String old, String now) throws Exception {
    Path manifest = folder.resolve("manifest.json");
    String text = new String(Files.readAllBytes(manifest), "UTF-8");
    assertTrue(old, text.contains(old));
    Files.write(manifest, text.replace(old, now).getBytes("UTF-8"));
  }

  private void type(MainActivity screen, String text) {
    screen.<EditText>findViewById(R.id.text).setText(text);
  }

  private String message(MainActivity screen) {
    return text(screen, R.id.message);
  }
}
