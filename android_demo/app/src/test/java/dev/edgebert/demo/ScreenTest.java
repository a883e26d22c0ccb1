package dev.edgebert.demo;

import android.app.Activity;
import android.os.Build;
import android.widget.TextView;
import dev.edgebert.core.measure.Job;
import dev.edgebert.core.measure.MeasureSettings;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.Before;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.GraphicsMode;
import org.robolectric.util.ReflectionHelpers;

/** A test of screens on the JVM, with the shipped bundle in the assets and the real runtime. */
@RunWith(RobolectricTestRunner.class)
@GraphicsMode(GraphicsMode.Mode.NATIVE)
@Config(sdk = 35, qualifiers = "en-w360dp-h760dp-xhdpi")
public abstract class ScreenTest {
  static final String BUNDLE = "albert";

  @Before
  public void beAModernPhone() {
    String[] abis = {"arm64-v8a"}; // Robolectric's own is of 2012
    ReflectionHelpers.setStaticField(Build.class, "SUPPORTED_ABIS", abis);
  }

  DemoApp app() {
    return (DemoApp) RuntimeEnvironment.getApplication();
  }

  String text(Activity screen, int view) {
    return ((TextView) screen.findViewById(view)).getText().toString();
  }

  /** A run of a second; the rule's minute is not needed to see that it works. */
  MeasureRequest shortRun() {
    MeasureSettings settings = new MeasureSettings(new int[] {1}, 0, 5, 300, 0.3, 5, 0);
    return new MeasureRequest(Job.measure(BUNDLE, null, settings), null, null);
  }

  void runToTheEnd(MeasureRequest request) throws Exception {
    app().start(request);
    Waiting.until(() -> !app().isMeasuring());
  }

  /** Copies the shipped bundle to where adb pushes bundles. */
  Path push(String name) throws IOException {
    Path folder = app().bundles().pushed().toPath().resolve(name);
    Files.createDirectories(folder);
    for (String file :
        new String[] {"manifest.json", "tokenizer.json", "golden.jsonl", "model.onnx"}) {
      File from = new File(System.getProperty("bundle.dir"), file);
      Files.copy(from.toPath(), folder.resolve(file));
    }
    return folder;
  }
}
