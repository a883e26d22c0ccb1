package dev.edgebert.core;

import java.io.File;

/** The bundle that ships, built by ci/build.sh, and the labels that the pipeline gives. */
public final class TestBundle {
  private TestBundle() {}

  public static File folder() {
    return existing("bundle.dir", "../build/bundle");
  }

  public static File expected() {
    return existing("expected.file", "../build/expected.jsonl");
  }

  private static File existing(String property, String usual) {
    File file = new File(System.getProperty(property, usual));
    if (!file.exists()) {
      throw new IllegalStateException(file + " is missing: run ci/build.sh");
    }
    return file;
  }
}
