package dev.edgebert.core.measure;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import dev.edgebert.core.TestBundle;
import dev.edgebert.core.bundle.Bundle;
import dev.edgebert.core.bundle.FolderFiles;
import dev.edgebert.core.engine.Engines;
import dev.edgebert.core.engine.OnnxEngine;
import dev.edgebert.core.measure.RunListener.CancelledException;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Runs of the shipped bundle on the real runtime. */
public class MeasurerTest {
  @Rule public final TemporaryFolder temporary = new TemporaryFolder();

  /** ci/build.sh holds the file that this leaves to measurement.schema.json. */
  @Test
  public void aRunFillsTheWholeResult() throws Exception {
    Path folder = copy();
    Files.copy(folder.resolve("model.onnx"), folder.resolve(Bundle.FP32)); // any model file will do
    MeasureSettings settings = new MeasureSettings(new int[] {1, 2}, 0, 3, 40, 0.05, 5, 0.2);
    Counter counter = new Counter(Integer.MAX_VALUE);
    Result result = measure(folder, settings, counter, DeviceKind.PHONE);
    assertNull(result.error());
    Map<String, Object> json = result.json();
    List<?> runs = (List<?>) json.get("answers");
    assertEquals(4, runs.size());
    Map<?, ?> first = (Map<?, ?>) runs.get(0);
    Map<?, ?> fp32 = (Map<?, ?>) runs.get(1);
    assertEquals("fp32", fp32.get("scheme"));
    assertEquals(fp32.get("p50_ms"), first.get("fp32_p50_ms"));
    assertTrue((Integer) first.get("runs") >= 40);
    assertTrue((Double) first.get("p50_ms") <= (Double) first.get("p99_ms"));
    assertEquals(Collections.singletonList("fewer than 1024 inferences or less than 60 s"),
        json.get("invalid_because"));
    assertTrue(counter.latencies > 160);
    ResultFile.write(new File("target/measurement.json"), json);
  }

  @Test
  public void goldenTextsProveTheBundle() throws Exception {
    Result result = measure(copy(), null, new Counter(Integer.MAX_VALUE), DeviceKind.HOST);
    assertTrue(result.golden().faults.toString(), result.golden().passed());
    assertTrue(result.golden().maxAbs <= result.golden().tolerance);
    assertEquals(false, result.json().get("valid"));
    assertEquals(Collections.singletonList("not a phone: host"), result.json().get("invalid_because"));
    ResultFile.write(new File("target/golden.json"), result.json());
  }

  @Test
  public void rowsAreAnsweredAsRunPyAnswersThem() throws Exception {
    Path folder = copy();
    String rows =
        "{\"id\": 3, \"text\": \"play some jazz\"}\n"
            + "{\"id\": 4, \"text\": \"\", \"tokens\": [\"a\"]}\n";
    Path file = folder.resolve(Bundle.ROWS);
    Files.write(file, rows.split("\n")[0].getBytes("UTF-8"));
    Result result = run(folder, Job.rows("rows", null, 0), DeviceKind.PHONE);
    List<?> answers = (List<?>) result.json().get("answers");
    assertEquals("none, batch 1", ((Map<?, ?>) answers.get(0)).get("padding"));
    assertEquals(151, ((List<?>) ((Map<?, ?>) answers.get(1)).get("logits")).size());
    ResultFile.write(new File("target/rows.json"), result.json());

    Files.write(file, rows.getBytes("UTF-8"));
    Result words = run(folder, Job.rows("rows", null, 0), DeviceKind.PHONE);
    assertTrue(words.error(), words.error().startsWith("tokenizer refused"));
  }

  @Test
  public void aBundleOfOtherWeightsFailsItsGoldenTexts() throws Exception {
    Path folder = copy();
    byte[] model = Files.readAllBytes(folder.resolve("model.onnx"));
    for (int at = model.length / 4; at < model.length / 4 + 200_000; at++) {
      model[at] = (byte) -model[at]; // inside the embeddings: a model that loads and is wrong
    }
    Files.write(folder.resolve("model.onnx"), model);
    String sum = dev.edgebert.core.bundle.Checksum.sha256(java.nio.ByteBuffer.wrap(model));
    Path manifest = folder.resolve("manifest.json");
    String text = new String(Files.readAllBytes(manifest), "UTF-8");
    String old = Bundle.open(new FolderFiles(folder.toFile())).manifest().files.get("model.onnx");
    Files.write(manifest, text.replace(old, sum).getBytes("UTF-8"));
    Result result = measure(folder, null, new Counter(Integer.MAX_VALUE), DeviceKind.PHONE);
    assertNull(result.error());
    assertFalse(result.golden().passed());
  }

  @Test
  public void aBundleThatIsMissingIsAResultWithAnError() throws Exception {
    Path nowhere = temporary.getRoot().toPath().resolve("nowhere");
    Result result = measure(nowhere, null, new Counter(Integer.MAX_VALUE), DeviceKind.PHONE);
    assertEquals("missing: nowhere", result.error());
    assertEquals(false, result.json().get("valid"));
    ResultFile.write(new File("target/failed.json"), result.json());
  }

  @Test
  public void aRunCanBeStopped() throws Exception {
    MeasureSettings forever = new MeasureSettings(new int[] {1}, 0, 0, 1 << 30, 1e9, 1e9, 0);
    Path folder = copy();
    assertThrows(
        CancelledException.class,
        () -> measure(folder, forever, new Counter(10), DeviceKind.PHONE));
  }

  @Test
  public void onlyAPhoneIsAPhone() {
    Map<String, String> build = new LinkedHashMap<>();
    build.put("FINGERPRINT", "google/oriole/oriole:15/AP3A.241005.015/123:user/release-keys");
    build.put("HARDWARE", "oriole");
    assertEquals(DeviceKind.PHONE, DeviceKind.of("Dalvik", build));
    assertEquals(DeviceKind.HOST, DeviceKind.of("OpenJDK 64-Bit Server VM", build));
    assertEquals(DeviceKind.HOST, DeviceKind.of(null, build));
    build.put("HARDWARE", "ranchu");
    assertEquals(DeviceKind.EMULATOR, DeviceKind.of("Dalvik", build));
    build.put("HARDWARE", "x");
    build.put("FINGERPRINT", "google/sdk_gphone64_x86_64/emu64xa:14/UE1A/1:userdebug/dev-keys");
    assertEquals(DeviceKind.EMULATOR, DeviceKind.of("Dalvik", build));
  }

  @Test
  public void aResultIsOneLineOrWhole() throws Exception {
    File file = new File(temporary.getRoot(), "folder/a.json");
    ResultFile.writeLine(file, Collections.singletonMap("text", "two\n  lines"));
    assertEquals("{\"text\": \"two\\n  lines\"}\n", new String(Files.readAllBytes(file.toPath()), "UTF-8"));
    assertEquals(1, file.getParentFile().list().length);
    File blocked = new File(file, "below-a-file.json");
    assertThrows(IOException.class, () -> ResultFile.write(blocked, Collections.emptyMap()));
  }

  private static Result run(Path folder, Job job, DeviceKind kind) throws Exception {
    Engines engines = new Engines(new OnnxEngine());
    AppInfo app = new AppInfo("0.1.0", false);
    RunListener listener = new Counter(Integer.MAX_VALUE);
    return new Measurer(engines, new TestDevice(kind), app, listener)
        .run(job, () -> Bundle.open(new FolderFiles(folder.toFile())), null);
  }

  private static Result measure(
      Path folder, MeasureSettings settings, RunListener listener, DeviceKind kind)
      throws Exception {
    Engines engines = new Engines(new OnnxEngine());
    AppInfo app = new AppInfo("0.1.0", false);
    String name = folder.getFileName().toString();
    Job job =
        settings == null ? Job.golden(name, "onnx", 1) : Job.measure(name, "onnx", settings);
    return new Measurer(engines, new TestDevice(kind), app, listener).run(
        job,
        () -> Bundle.open(new FolderFiles(folder.toFile())),
        null);
  }

  private Path copy() throws IOException {
    Path folder = temporary.newFolder().toPath();
    for (String file :
        new String[] {"manifest.json", "tokenizer.json", "golden.jsonl", "model.onnx"}) {
      Files.copy(TestBundle.folder().toPath().resolve(file), folder.resolve(file));
    }
    return folder;
  }

  private static final class TestDevice implements Device {
    private final DeviceKind kind;

    TestDevice(DeviceKind kind) {
      this.kind = kind;
    }

    @Override
    public DeviceInfo info() {
      return new DeviceInfo(
          kind, "maker", "model", "soc", "arm64-v8a", 8, "15", 35, "schedutil", 2800);
    }

    @Override
    public DeviceState state() {
      return new DeviceState("none", 80, 31.5, false, false, 120.5);
    }

    @Override
    public boolean leftForeground() {
      return false;
    }
  }

  private static final class Counter implements RunListener {
    private final int most;
    private int latencies;

    Counter(int most) {
      this.most = most;
    }

    @Override
    public void progress(Progress progress) {}

    @Override
    public void latency(double ms) {
      latencies++;
    }

    @Override
    public boolean cancelled() {
      return latencies >= most;
    }
  }
}
