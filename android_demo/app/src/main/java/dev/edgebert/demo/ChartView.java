package dev.edgebert.demo;

import android.content.Context;
import android.graphics.Canvas;
import android.graphics.Paint;
import android.graphics.Path;
import android.util.AttributeSet;
import android.util.TypedValue;
import android.view.View;
import java.text.NumberFormat;

/** Latency over time: a line through the medians, a band up to the highest. */
public final class ChartView extends View {
  private static final int LINES = 4;

  private final Paint line = new Paint(Paint.ANTI_ALIAS_FLAG);
  private final Paint band = new Paint(Paint.ANTI_ALIAS_FLAG);
  private final Paint grid = new Paint(Paint.ANTI_ALIAS_FLAG);
  private final Paint label = new Paint(Paint.ANTI_ALIAS_FLAG);
  private double[] medians = {};
  private double[] highest = {};

  public ChartView(Context context, AttributeSet attributes) {
    super(context, attributes);
    line.setColor(context.getColor(R.color.accent));
    line.setStyle(Paint.Style.STROKE);
    line.setStrokeWidth(pixels(TypedValue.COMPLEX_UNIT_DIP, 2));
    line.setStrokeJoin(Paint.Join.ROUND);
    band.setColor(context.getColor(R.color.accent_soft));
    grid.setColor(context.getColor(R.color.outline));
    grid.setStrokeWidth(pixels(TypedValue.COMPLEX_UNIT_DIP, 1));
    label.setColor(context.getColor(R.color.text_soft));
    label.setTextAlign(Paint.Align.RIGHT);
    label.setTextSize(pixels(TypedValue.COMPLEX_UNIT_SP, 12));
  }

  /** Shows points, of which each stands for an equal number of inferences; milliseconds. */
  void show(double[] medians, double[] highest) {
    this.medians = medians;
    this.highest = highest;
    String now = medians.length == 0 ? "" : Screen.number(medians[medians.length - 1]);
    setContentDescription(getContext().getString(R.string.chart_description, now));
    invalidate();
  }

  @Override
  protected void onDraw(Canvas canvas) {
    double top = top();
    float text = label.getTextSize();
    float left = 0;
    for (int index = 0; index <= LINES; index++) {
      left = Math.max(left, label.measureText(tick(top * index / LINES)) + text / 2);
    }
    float height = getHeight() - text;
    for (int index = 0; index <= LINES; index++) {
      float y = text / 2 + height * (LINES - index) / LINES;
      canvas.drawLine(left, y, getWidth(), y, grid);
      canvas.drawText(tick(top * index / LINES), left - text / 2, y + text / 3, label);
    }
    if (medians.length < 2) {
      return;
    }
    Path median = new Path();
    Path area = new Path();
    for (int index = 0; index < medians.length; index++) {
      float x = left + (getWidth() - left) * index / (medians.length - 1);
      float y = y(medians[index], top, height, text);
      if (index == 0) {
        median.moveTo(x, y);
        area.moveTo(x, y);
      } else {
        median.lineTo(x, y);
        area.lineTo(x, y);
      }
    }
    for (int index = medians.length - 1; index >= 0; index--) {
      float x = left + (getWidth() - left) * index / (medians.length - 1);
      area.lineTo(x, y(highest[index], top, height, text));
    }
    area.close();
    canvas.drawPath(area, band);
    canvas.drawPath(median, line);
  }

  private static float y(double value, double top, float height, float text) {
    return (float) (text / 2 + height * (1 - Math.min(1, value / top)));
  }

  /** A round number above most of the points: one outlier does not flatten the rest. */
  private double top() {
    double most = 0;
    for (double median : medians) {
      most = Math.max(most, 2 * median);
    }
    double unit = Math.pow(10, Math.floor(Math.log10(Math.max(most, 0.01))));
    for (double step : new double[] {1, 2, 4, 10}) {
      if (step * unit >= most) {
        return step * unit;
      }
    }
    return 10 * unit;
  }

  private static String tick(double value) {
    return NumberFormat.getInstance().format(value); // 0, 0.25, 50
  }

  private float pixels(int unit, float value) {
    return TypedValue.applyDimension(unit, value, getResources().getDisplayMetrics());
  }
}
