package dev.edgebert.demo;

import android.content.Context;
import android.util.AttributeSet;
import android.view.View;
import android.view.ViewGroup;

/**
 * Children beside each other, and in a new line where there is no room: large fonts do not
 * overlap.
 */
public final class FlowLayout extends ViewGroup {
  private final int gap = Math.round(8 * getResources().getDisplayMetrics().density);

  public FlowLayout(Context context, AttributeSet attributes) {
    super(context, attributes);
  }

  @Override
  protected void onMeasure(int widthSpec, int heightSpec) {
    int width = MeasureSpec.getSize(widthSpec);
    for (int index = 0; index < getChildCount(); index++) {
      View child = getChildAt(index);
      int childWidth = MeasureSpec.makeMeasureSpec(width, MeasureSpec.AT_MOST);
      int childHeight = MeasureSpec.makeMeasureSpec(0, MeasureSpec.UNSPECIFIED);
      child.measure(childWidth, childHeight);
    }
    setMeasuredDimension(width, resolveSize(place(width, false), heightSpec));
  }

  @Override
  protected void onLayout(boolean changed, int left, int top, int right, int bottom) {
    place(right - left, true);
  }

  /** Lays the children out, or only finds out their height. */
  private int place(int width, boolean layout) {
    boolean rightToLeft = getLayoutDirection() == LAYOUT_DIRECTION_RTL;
    int x = 0;
    int y = 0;
    int line = 0;
    for (int index = 0; index < getChildCount(); index++) {
      View child = getChildAt(index);
      if (child.getVisibility() == GONE) {
        continue;
      }
      int childWidth = child.getMeasuredWidth();
      int childHeight = child.getMeasuredHeight();
      if (x > 0 && x + childWidth > width) {
        x = 0;
        y += line + gap;
        line = 0;
      }
      if (layout) {
        int start = rightToLeft ? width - x - childWidth : x;
        child.layout(start, y, start + childWidth, y + childHeight);
      }
      x += childWidth + gap;
      line = Math.max(line, childHeight);
    }
    return y + line;
  }
}
