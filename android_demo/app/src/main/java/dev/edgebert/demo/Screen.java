package dev.edgebert.demo;

import android.app.Activity;
import android.content.Context;
import android.content.Intent;
import android.content.res.ColorStateList;
import android.os.Build;
import android.os.Bundle;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.ImageView;
import android.widget.TextView;
import java.util.Locale;

/**
 * What every screen has: a title, content that scrolls, the bar that leads to the other screens.
 */
abstract class Screen extends Activity {
  private static final Class<?>[] SCREENS = {
    MainActivity.class, MeasureActivity.class, ResultsActivity.class, BundlesActivity.class
  };
  private static final int[] LABELS = {
    R.string.classify, R.string.measure, R.string.results, R.string.bundles
  };
  private static final int[] ICONS = {
    R.drawable.ic_classify, R.drawable.ic_measure, R.drawable.ic_results, R.drawable.ic_bundles
  };

  @Override
  protected void onCreate(Bundle state) {
    super.onCreate(state);
    setContentView(R.layout.screen);
    if (Build.VERSION.SDK_INT >= 30) {
      new EdgeToEdge(this).apply();
    }
    ViewGroup content = findViewById(R.id.content);
    getLayoutInflater().inflate(layout(), content);
    ViewGroup navigation = findViewById(R.id.navigation);
    for (int index = 0; index < SCREENS.length; index++) {
      navigation.addView(item(navigation, index));
    }
  }

  /** The layout of the content. */
  abstract int layout();

  private View item(ViewGroup navigation, int index) {
    boolean here = SCREENS[index] == getClass();
    View item = getLayoutInflater().inflate(R.layout.navigation_item, navigation, false);
    TextView label = item.findViewById(R.id.label);
    ImageView icon = item.findViewById(R.id.icon);
    label.setText(LABELS[index]);
    icon.setImageResource(ICONS[index]);
    int color = getColor(here ? R.color.accent : R.color.text_soft);
    label.setTextColor(color);
    icon.setImageTintList(ColorStateList.valueOf(color));
    item.setContentDescription(getString(LABELS[index]));
    item.setSelected(here);
    if (here) {
      ((TextView) findViewById(R.id.title)).setText(LABELS[index]);
    } else {
      item.setOnClickListener(view -> go(SCREENS[index]));
    }
    return item;
  }

  private void go(Class<?> screen) {
    startActivity(
        new Intent(this, screen)
            .addFlags(Intent.FLAG_ACTIVITY_CLEAR_TOP | Intent.FLAG_ACTIVITY_SINGLE_TOP));
    if (getClass() != MainActivity.class) {
      finish(); // back leads to the first screen from everywhere
    }
  }

  DemoApp app() {
    return DemoApp.of(this);
  }

  /** A number of milliseconds or megabytes, to three digits, as the user's language writes it. */
  static String number(double value) {
    int decimals = value < 0.1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0;
    return String.format(Locale.getDefault(), "%." + decimals + "f", value);
  }

  /** Sets a text, and hides the view where there is none. */
  static void show(TextView view, CharSequence text) {
    view.setText(text);
    view.setVisibility(text == null || text.length() == 0 ? View.GONE : View.VISIBLE);
  }

  static View inflate(Context context, int layout, ViewGroup parent) {
    View view = LayoutInflater.from(context).inflate(layout, parent, false);
    parent.addView(view);
    return view;
  }
}
