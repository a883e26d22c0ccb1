package dev.edgebert.core.engine;

import dev.edgebert.core.bundle.Bundle;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import dev.edgebert.core.bundle.ModelEntry;
import java.util.ArrayList;
import java.util.List;

/** The runtimes that this app has. */
public final class Engines {
  private final List<Engine> engines = new ArrayList<>();

  /** Those whose libraries are there. */
  public Engines(ClassLoader loader) {
    try {
      engines.add(new OnnxEngine());
    } catch (BundleException notThere) {
      // another may be; a bundle that needs this one says so
    }
    try {
      engines.add(new LiteRtEngine(loader));
    } catch (BundleException notThere) {
      // as above
    }
  }

  /** Only this one. */
  public Engines(Engine engine) {
    engines.add(engine);
  }

  /** The runtime of a model file. */
  public Engine find(ModelEntry model) throws BundleException {
    for (Engine engine : engines) {
      if (engine.format().equals(model.format)) {
        return engine;
      }
    }
    throw new BundleException(Problem.NO_ENGINE, model.format);
  }

  /**
   * The first model file of a bundle that is there and that a runtime can run.
   *
   * @param format which it must be; null for any
   * @throws BundleException NO_ENGINE, OLD_RUNTIME, or DAMAGED where the file is missing
   */
  public ModelEntry pick(Bundle bundle, String format) throws BundleException {
    BundleException reason = new BundleException(Problem.NO_ENGINE, bundle.name());
    for (ModelEntry model : bundle.manifest().models) {
      for (Engine engine : engines) {
        boolean asked = format == null || format.equals(model.format);
        if (!asked || !engine.format().equals(model.format)) {
          continue;
        }
        if (compare(versionOf(engine.runtime()), model.minimumRuntime) < 0) {
          String needs = engine.runtime() + " < " + model.minimumRuntime;
          reason = new BundleException(Problem.OLD_RUNTIME, needs);
        } else if (!bundle.has(model.file)) {
          reason = new BundleException(Problem.DAMAGED, model.file);
        } else {
          return model;
        }
      }
    }
    throw reason;
  }

  private static String versionOf(String runtime) {
    return runtime.substring(runtime.lastIndexOf(' ') + 1);
  }

  /** Compares versions by their numbers; what is no number counts as 0. */
  static int compare(String left, String right) {
    String[] first = left.split("\\.");
    String[] second = right.split("\\.");
    for (int part = 0; part < Math.max(first.length, second.length); part++) {
      int order = Integer.compare(number(first, part), number(second, part));
      if (order != 0) {
        return order;
      }
    }
    return 0;
  }

  private static int number(String[] parts, int index) {
    if (index >= parts.length || !parts[index].matches("\\d{1,9}")) {
      return 0;
    }
    return Integer.parseInt(parts[index]);
  }
}
