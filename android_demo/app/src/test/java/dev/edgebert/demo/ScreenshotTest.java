package dev.edgebert.demo;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.app.Activity;
import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.view.View;
import android.view.ViewGroup;
import android.widget.EditText;
import android.widget.TextView;
import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import org.junit.Test;
import org.robolectric.Robolectric;
import org.robolectric.RuntimeEnvironment;

/**
 * A picture of each screen, in light and dark, with large fonts, in Chinese; for people to look
 * at.
 */
public class ScreenshotTest extends ScreenTest {
  private static final String TEXT = "transfer ten dollars from checking to my savings account";

  @Test
  public void light() throws Exception {
    takePictures("light");
  }

  @Test
  public void dark() throws Exception {
    RuntimeEnvironment.setQualifiers("+night");
    takePictures("dark");
  }

  @Test
  public void largeFonts() throws Exception {
    RuntimeEnvironment.setFontScale(2f);
    takePictures("large");
  }

  @Test
  public void chinese() throws Exception {
    RuntimeEnvironment.setQualifiers("+zh-rCN");
    takePictures("chinese");
  }

  @Test
  public void landscape() throws Exception {
    RuntimeEnvironment.setQualifiers("+w760dp-h360dp-land");
    takePictures("landscape");
  }

  private void takePictures(String name) throws Exception {
    MainActivity classify = Robolectric.setupActivity(MainActivity.class);
    ((EditText) classify.findViewById(R.id.text)).setText(TEXT);
    Waiting.until(() -> classify.<ViewGroup>findViewById(R.id.answers).getChildCount() == 5);
    View first = classify.<ViewGroup>findViewById(R.id.answers).getChildAt(0);
    assertEquals("transfer", ((TextView) first.findViewById(R.id.label)).getText().toString());
    save(classify, name + "-classify");

    save(Robolectric.setupActivity(MeasureActivity.class), name + "-measure");
    runToTheEnd(shortRun());
    MeasureActivity measured = Robolectric.setupActivity(MeasureActivity.class);
    measured.findViewById(R.id.options).setVisibility(View.GONE); // as while a run goes on
    save(measured, name + "-measured");

    save(Robolectric.setupActivity(ResultsActivity.class), name + "-results");
    save(Robolectric.setupActivity(BundlesActivity.class), name + "-bundles");
  }

  private static void save(Activity screen, String name) throws Exception {
    View view = screen.getWindow().getDecorView();
    int width = screen.getResources().getDisplayMetrics().widthPixels;
    int height = screen.getResources().getDisplayMetrics().heightPixels;
    view.measure(
        View.MeasureSpec.makeMeasureSpec(width, View.MeasureSpec.EXACTLY),
        View.MeasureSpec.makeMeasureSpec(height, View.MeasureSpec.EXACTLY));
    view.layout(0, 0, width, height);
    assertNothingOverlaps(screen.findViewById(R.id.screen), name);
    Bitmap picture = Bitmap.createBitmap(width, height, Bitmap.Config.ARGB_8888);
    view.draw(new Canvas(picture));
    File folder = new File(System.getProperty("screens.dir"));
    assertTrue(folder.isDirectory() || folder.mkdirs());
    try (OutputStream out = new FileOutputStream(new File(folder, name + ".png"))) {
      assertTrue(picture.compress(Bitmap.CompressFormat.PNG, 100, out));
    }
  }

  /** Children of a group lie beside each other, and no text is wider or higher than its place. */
  private static void assertNothingOverlaps(View view, String where) {
    if (view instanceof TextView && view.getVisibility() == View.VISIBLE) {
      TextView text = (TextView) view;
      int needs = text.getLayout() == null ? 0 : text.getLayout().getHeight();
      boolean scrolls = text.getMaxLines() < Integer.MAX_VALUE;
      assertTrue(where + " cuts off: " + text.getText(), scrolls || needs <= text.getHeight());
    }
    if (!(view instanceof ViewGroup) || view instanceof android.widget.Spinner) {
      return;
    }
    ViewGroup group = (ViewGroup) view;
    for (int one = 0; one < group.getChildCount(); one++) {
      View child = group.getChildAt(one);
      assertNothingOverlaps(child, where);
      for (int two = one + 1; two < group.getChildCount(); two++) {
        View other = group.getChildAt(two);
        boolean seen = child.getVisibility() == View.VISIBLE;
        seen &= other.getVisibility() == View.VISIBLE;
        boolean apart =
            child.getBottom() <= other.getTop()
                || other.getBottom() <= child.getTop()
                || child.getRight() <= other.getLeft()
                || other.getRight() <= child.getLeft();
        assertTrue(where + " overlaps: " + child + " and " + other, !seen || apart);
      }
    }
  }
}
