package dev.edgebert.demo;

import android.annotation.TargetApi;
import android.app.Activity;
import android.graphics.Insets;
import android.view.View;
import android.view.WindowInsets;

/**
 * From Android 15 on a window reaches under the system's bars: its content keeps away from them, from
 * the keyboard and from the camera itself.
 */
@TargetApi(30)
final class EdgeToEdge {
  private final Activity activity;
  private final View scroll;
  private final View navigation;
  private final int side;
  private final int top;

  EdgeToEdge(Activity activity) {
    this.activity = activity;
    scroll = activity.findViewById(R.id.scroll);
    navigation = activity.findViewById(R.id.navigation);
    side = scroll.getPaddingLeft();
    top = scroll.getPaddingTop();
  }

  void apply() {
    activity.getWindow().setDecorFitsSystemWindows(false);
    activity.findViewById(R.id.screen).setOnApplyWindowInsetsListener(this::keepAway);
  }

  private WindowInsets keepAway(View screen, WindowInsets all) {
    int kinds = WindowInsets.Type.systemBars() | WindowInsets.Type.displayCutout();
    Insets bars = all.getInsets(kinds);
    Insets keyboard = all.getInsets(WindowInsets.Type.ime());
    screen.setPadding(0, bars.top, 0, Math.max(0, keyboard.bottom - bars.bottom));
    scroll.setPadding(side + bars.left, top, side + bars.right, top);
    navigation.setPadding(bars.left, 0, bars.right, bars.bottom);
    return WindowInsets.CONSUMED;
  }
}
