package dev.edgebert.core.engine;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import dev.edgebert.core.TestBundle;
import dev.edgebert.core.bundle.Bundle;
import dev.edgebert.core.bundle.FolderFiles;
import dev.edgebert.core.json.Json;
import java.io.BufferedReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.Test;

/** Text to label, on the JVM, with the bundle that ships: what `edgebert predict` says. */
public class ShippedBundleTest {
  private static final int TEST_ROWS = 5500;

  @Test
  public void everyTestRowHasTheLabelOfThePipeline() throws Exception {
    List<String> faults = new ArrayList<>();
    int rows = 0;
    double largest = 0;
    Bundle bundle = Bundle.open(new FolderFiles(TestBundle.folder()));
    try (Classifier classifier = new Classifier(bundle, new Engines(new OnnxEngine()), "onnx", 1);
        BufferedReader lines =
            Files.newBufferedReader(TestBundle.expected().toPath(), StandardCharsets.US_ASCII)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Map<?, ?> expected = (Map<?, ?>) Json.parse(new StringReader(line));
        Prediction found = classifier.predict((String) expected.get("text"), null);
        Prediction.Answer best = found.answers.get(0);
        double score = ((Number) expected.get("score")).doubleValue();
        if (!best.label.equals(expected.get("label"))) {
          faults.add(line + " -> " + best.label + " " + best.score);
        }
        largest = Math.max(largest, Math.abs(best.score - score));
        rows++;
      }
    }
    assertEquals(TEST_ROWS, rows);
    assertTrue(faults.size() + " other labels: " + faults, faults.isEmpty());
    assertTrue("a score is off by " + largest, largest < 1e-6);
  }
}
