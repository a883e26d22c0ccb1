package dev.edgebert.demo;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.content.Intent;
import android.content.pm.ActivityInfo;
import android.content.pm.PackageInfo;
import android.content.pm.PackageManager;
import android.widget.Button;
import dev.edgebert.core.measure.Job;
import dev.edgebert.core.measure.MeasureSettings;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.Test;
import org.robolectric.Robolectric;
import org.robolectric.Shadows;
import org.robolectric.android.controller.ActivityController;

/** Runs that a user starts, and those that adb starts. */
public class MeasureTest extends ScreenTest {
  private static final MeasureSettings LONG =
      new MeasureSettings(new int[] {1}, 0, 5, 1_000_000, 600, 600, 0);

  @Test
  public void aRunLeavesAResultToShare() throws Exception {
    runToTheEnd(shortRun());
    assertNull(app().run().saveError());
    List<File> files = app().results().list();
    assertEquals(1, files.size());
    Map<?, ?> result = Results.read(files.get(0));
    assertEquals("host", ((Map<?, ?>) result.get("device")).get("kind"));
    assertEquals(false, result.get("valid"));
    assertEquals(true, ((Map<?, ?>) result.get("golden")).get("passed"));

    ResultsActivity screen = Robolectric.setupActivity(ResultsActivity.class);
    screen.findViewById(R.id.share).performClick();
    Intent chooser = Shadows.shadowOf(screen).getNextStartedActivity();
    Intent send = chooser.getParcelableExtra(Intent.EXTRA_INTENT);
    assertEquals(Intent.ACTION_SEND, send.getAction());
    assertTrue(send.getStringExtra(Intent.EXTRA_TEXT).contains("\"p99_ms\""));
    screen.findViewById(R.id.delete).performClick();
    assertEquals(Collections.emptyList(), app().results().list());
  }

  @Test
  public void adbGetsTheGoldenCheck() throws Exception {
    Robolectric.buildActivity(MeasureActivity.class, request("golden", "proof")).setup();
    Waiting.until(() -> !app().isMeasuring());
    Map<?, ?> result = Results.read(app().results().pulled("proof"));
    assertFalse(result.containsKey("error"));
    Map<?, ?> answer = (Map<?, ?>) ((List<?>) result.get("answers")).get(0);
    assertEquals(true, answer.get("passed"));
    assertEquals("onnx", answer.get("format"));
    Map<?, ?> progress = Results.read(app().results().progress("proof"));
    assertEquals("done", progress.get("phase"));
    assertEquals("nothing for the phone's own list", 0, app().results().list().size());
  }

  @Test
  public void adbGetsTheLogitsOfTexts() throws Exception {
    Path folder = push("with-rows");
    String rows = "{\"id\": 7, \"text\": \"hi\"}\n{\"id\": 9, \"ids\": [2, 51, 3]}\n";
    Files.write(folder.resolve("rows.jsonl"), rows.getBytes("UTF-8"));
    Intent intent = request("rows", "logits").putExtra(MeasureRequest.BUNDLE, "with-rows");
    Robolectric.buildActivity(MeasureActivity.class, intent).setup();
    Waiting.until(() -> !app().isMeasuring());
    Map<?, ?> result = Results.read(app().results().pulled("logits"));
    List<?> answers = (List<?>) result.get("answers");
    assertEquals(3, answers.size());
    assertEquals(result.get("bundle"), ((Map<?, ?>) answers.get(0)).get("bundle"));
    Map<?, ?> second = (Map<?, ?>) answers.get(2);
    assertEquals(9L, second.get("id"));
    assertEquals(151, ((List<?>) second.get("logits")).size());
  }

  @Test
  public void adbIsToldThatABundleIsMissing() throws Exception {
    Intent intent = request("golden", "missing").putExtra(MeasureRequest.BUNDLE, "nowhere");
    MeasureActivity screen =
        Robolectric.buildActivity(MeasureActivity.class, intent).setup().get();
    Waiting.until(() -> !app().isMeasuring());
    Map<?, ?> result = Results.read(app().results().pulled("missing"));
    assertEquals("missing: nowhere", result.get("error"));
    assertEquals(2L, result.get("code"));
    Waiting.until(() -> !text(screen, R.id.message).isEmpty());
    String message = app().getString(R.string.problem_missing, "nowhere");
    assertEquals(message, text(screen, R.id.message));
  }

  @Test
  public void hostileExtrasStartNothing() throws Exception {
    Intent[] intents = {
      request("golden", "../../escape"),
      request("golden", "fine").putExtra(MeasureRequest.BUNDLE, "../albert"),
      request("golden", "fine").putExtra(MeasureRequest.BUNDLE, (String) null),
      request("golden", "fine").putExtra(MeasureRequest.THREADS, -1),
      request("golden", "fine").putExtra(MeasureRequest.THREADS, 1 << 30),
      request("golden", "fine").putExtra(MeasureRequest.COMPARE, "/etc/passwd"),
      request("golden", new String(new char[1 << 16]).replace('\0', 'x')),
      request("format the phone", "fine"),
      request("golden", "fine").putExtra(MeasureRequest.MODE, 7),
    };
    for (Intent intent : intents) {
      MeasureActivity screen =
          Robolectric.buildActivity(MeasureActivity.class, intent).setup().get();
      assertFalse(intent.toString(), app().isMeasuring());
      assertNull(app().run());
      assertFalse(text(screen, R.id.message).isEmpty());
    }
    Map<?, ?> refused = Results.read(app().results().pulled("fine"));
    assertTrue(refused.get("error").toString().startsWith("cannot start"));
    File storage = app().getExternalFilesDir(null);
    assertFalse(new File(storage.getParentFile(), "escape.json").exists());
    assertEquals(1, new File(storage, "results").list().length);
  }

  @Test
  public void turningThePhoneDoesNotEndOrRepeatARun() throws Exception {
    app().start(new MeasureRequest(Job.measure(BUNDLE, null, LONG), null, null));
    MeasureRun run = app().run();
    ActivityController<MeasureActivity> controller =
        Robolectric.buildActivity(MeasureActivity.class, request("golden", "second")).setup();
    assertTrue(text(controller.get(), R.id.message).contains("busy"));
    controller.recreate();
    assertTrue(run.isActive());
    assertEquals(run, app().run());
    Button stop = controller.get().findViewById(R.id.start);
    assertEquals(app().getString(R.string.stop), stop.getText().toString());
    stop.performClick();
    Waiting.until(() -> !app().isMeasuring());
    assertNull("a stopped run leaves no result", run.result());
    assertEquals(0, app().results().list().size());
  }

  @Test
  public void adbIsToldOfAStop() throws Exception {
    app().start(new MeasureRequest(Job.measure(BUNDLE, null, LONG), null, "stopped"));
    app().run().stop();
    Waiting.until(() -> !app().isMeasuring());
    Map<?, ?> result = Results.read(app().results().pulled("stopped"));
    assertEquals("stopped on the device", result.get("error"));
  }

  @Test
  public void aCallDuringARunIsNoted() throws Exception {
    ActivityController<MeasureActivity> controller =
        Robolectric.buildActivity(MeasureActivity.class).setup();
    app().start(shortRun());
    controller.pause().stop();
    Waiting.until(() -> !app().isMeasuring());
    assertNotNull(app().run().result());
    Object reasons = app().run().result().json().get("invalid_because");
    assertTrue(reasons.toString(), reasons.toString().contains("left the foreground"));
  }

  @Test
  public void aRunThatTheAppDidNotSurviveIsSaidSo() throws Exception {
    app().results().mark(true); // what a process leaves that is ended
    app().onCreate();
    MeasureActivity screen = Robolectric.setupActivity(MeasureActivity.class);
    assertEquals(app().getString(R.string.run_lost), text(screen, R.id.message));
    assertEquals(0, app().results().list().size());
  }

  @Test
  public void onlyTheShellMayAskForARunAndNoPermissionIsNeeded() throws Exception {
    int flags = PackageManager.GET_ACTIVITIES | PackageManager.GET_PERMISSIONS;
    PackageInfo info = app().getPackageManager().getPackageInfo(app().getPackageName(), flags);
    assertNull(info.requestedPermissions);
    for (ActivityInfo activity : info.activities) {
      boolean main = activity.name.equals(MainActivity.class.getName());
      boolean shell = "android.permission.DUMP".equals(activity.permission);
      assertTrue(activity.name, main || shell || !activity.exported);
    }
  }

  private static Intent request(String mode, String result) {
    return new Intent()
        .putExtra(MeasureRequest.BUNDLE, BUNDLE)
        .putExtra(MeasureRequest.MODE, mode)
        .putExtra(MeasureRequest.THREADS, 1)
        .putExtra(MeasureRequest.RESULT, result);
  }
}
