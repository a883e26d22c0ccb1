package dev.edgebert.demo;

import android.os.Looper;
import java.util.concurrent.TimeUnit;
import org.robolectric.Shadows;

/** Waits for work on other threads while the main thread's queue goes on. */
final class Waiting {
  private static final long MOST_MS = 20_000;

  interface Condition {
    boolean holds() throws Exception;
  }

  private Waiting() {}

  static void until(Condition condition) throws Exception {
    long start = System.currentTimeMillis();
    while (!condition.holds()) {
      if (System.currentTimeMillis() - start > MOST_MS) {
        throw new AssertionError("nothing happened within " + MOST_MS + " ms");
      }
      Thread.sleep(10);
      Shadows.shadowOf(Looper.getMainLooper()).idleFor(50, TimeUnit.MILLISECONDS);
    }
  }
}
