package dev.edgebert.core.engine;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import org.junit.Test;

/** Runtimes that are there, that are not, and models that they refuse. */
public class EnginesTest {
  @Test
  public void versionsAreComparedByTheirNumbers() {
    assertTrue(Engines.compare("1.9", "1.17") < 0);
    assertTrue(Engines.compare("1.29.0", "1.17") > 0);
    assertEquals(0, Engines.compare("1.17", "1.17.0"));
    assertTrue(Engines.compare("2.16.1", "2.18") < 0);
    assertEquals(0, Engines.compare("unknown", "0"));
  }

  @Test
  public void whatIsNoModelIsRefused() throws Exception {
    ByteBuffer noise = ByteBuffer.allocateDirect(1000);
    OnnxEngine engine = new OnnxEngine();
    BundleException error =
        assertThrows(BundleException.class, () -> engine.load(noise, 1, 0, false));
    assertEquals(Problem.MODEL_REFUSED, error.problem());
  }

  @Test
  public void withoutLiteRtThereIsNoEngine() {
    BundleException error =
        assertThrows(
            BundleException.class, () -> new LiteRtEngine(getClass().getClassLoader()));
    assertEquals(Problem.NO_ENGINE, error.problem());
  }

  /** Its native part is for Android alone: what can be held here is that each name is there. */
  @Test
  public void liteRtHasWhatTheAppCalls() throws Exception {
    File folder = new File(System.getProperty("litert.dir", "../build/litert"));
    URL[] jars = {
      new File(folder, "tensorflow-lite-api.jar").toURI().toURL(),
      new File(folder, "tensorflow-lite.jar").toURI().toURL()
    };
    try (URLClassLoader loader = new URLClassLoader(jars, null)) {
      assertNotNull(new LiteRtApi(loader).runSignature);
    }
  }
}
