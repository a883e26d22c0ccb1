package dev.edgebert.demo;

import android.os.Bundle;
import android.os.Handler;
import android.os.Looper;
import android.text.Editable;
import android.text.TextWatcher;
import android.view.View;
import android.view.ViewGroup;
import android.widget.EditText;
import android.widget.ProgressBar;
import android.widget.TextView;
import dev.edgebert.core.bundle.Manifest;
import dev.edgebert.core.engine.Prediction;
import java.util.List;
import java.util.Locale;

/** Type a text, see its labels with confidence and time. */
public final class MainActivity extends Screen {
  private static final int MOST_ANSWERS = 5;
  private static final int MOST_TAGS = 200;
  private static final long PAUSE_MS = 150;

  private final Handler handler = new Handler(Looper.getMainLooper());
  private final Runnable classify = this::classify;
  private EditText text;
  private EditText pair;
  private int example;
  private boolean cut;

  @Override
  int layout() {
    return R.layout.classify;
  }

  @Override
  protected void onCreate(Bundle state) {
    super.onCreate(state);
    text = findViewById(R.id.text);
    pair = findViewById(R.id.pair);
    // Kept by the app, not in a saved state, which would leave the process.
    text.setText(app().texts().text());
    pair.setText(app().texts().pair());
    TextWatcher watcher = new Watcher();
    text.addTextChangedListener(watcher);
    pair.addTextChangedListener(watcher);
    findViewById(R.id.clear).setOnClickListener(view -> text.setText(""));
    findViewById(R.id.example).setOnClickListener(view -> nextExample());
  }

  @Override
  protected void onStart() {
    super.onStart();
    app().texts().listen(this::show);
    app().texts().changed();
    show();
  }

  @Override
  protected void onStop() {
    super.onStop();
    app().texts().listen(null);
    handler.removeCallbacks(classify);
  }

  private void nextExample() {
    List<String> examples = app().texts().examples();
    if (!examples.isEmpty()) {
      text.setText(examples.get(example++ % examples.size()));
      text.setSelection(text.length());
    }
  }

  private void classify() {
    app().texts().type(text.getText().toString(), pair.getText().toString());
  }

  private void show() {
    Texts texts = app().texts();
    Texts.Shown shown = texts.shown();
    ViewGroup answers = findViewById(R.id.answers);
    TextView message = findViewById(R.id.message);
    TextView times = findViewById(R.id.times);
    answers.removeAllViews();
    show(times, null);
    pair.setVisibility(texts.takesPairs() ? View.VISIBLE : View.GONE);
    findViewById(R.id.example)
        .setVisibility(texts.examples().isEmpty() ? View.GONE : View.VISIBLE);
    if (app().isMeasuring()) {
      show(message, getString(R.string.busy));
    } else if (shown == null) {
      show(message, getString(R.string.loading));
    } else if (shown.error != null) {
      show(message, Problems.text(this, shown.error));
    } else {
      Manifest manifest = shown.classifier.bundle().manifest();
      String name = shown.classifier.bundle().name();
      show(findViewById(R.id.bundle), name + " · " + shown.classifier.runtime());
      if (shown.prediction == null) {
        show(message, getString(R.string.nothing_typed));
      } else {
        show(shown.prediction, manifest, shown.classifier.model().maxLength);
      }
    }
  }

  private void show(Prediction found, Manifest manifest, int maxLength) {
    ViewGroup answers = findViewById(R.id.answers);
    TextView message = findViewById(R.id.message);
    String note =
        cut
            ? getString(R.string.cut, String.format("%,d", Texts.MOST_CHARACTERS))
            : found.truncated
                ? getString(R.string.truncated, maxLength)
                : found.answers.isEmpty() ? getString(R.string.no_answer) : null;
    show(message, note);
    boolean tags = manifest.task.equals("token");
    int most = Math.min(found.answers.size(), tags ? MOST_TAGS : MOST_ANSWERS);
    for (Prediction.Answer answer : found.answers.subList(0, most)) {
      View row = inflate(this, R.layout.answer, answers);
      String label = answer.token == null ? answer.label : answer.token + " · " + answer.label;
      ((TextView) row.findViewById(R.id.label)).setText(label);
      TextView score = row.findViewById(R.id.score);
      ProgressBar bar = row.findViewById(R.id.bar);
      if (manifest.task.equals("regression")) {
        score.setText(number(answer.score));
        bar.setVisibility(View.GONE);
      } else {
        String percent = String.format(Locale.getDefault(), "%.1f", 100 * answer.score);
        score.setText(getString(R.string.confidence, percent));
        bar.setProgress((int) Math.round(1000 * answer.score));
      }
    }
    show(
        findViewById(R.id.times),
        getString(
            R.string.classified,
            found.tokens,
            number(found.tokenizerMs),
            number(found.modelMs)));
  }

  private final class Watcher implements TextWatcher {
    @Override
    public void beforeTextChanged(CharSequence before, int start, int count, int after) {}

    @Override
    public void onTextChanged(CharSequence now, int start, int before, int count) {}

    @Override
    public void afterTextChanged(Editable now) {
      handler.removeCallbacks(classify);
      if (now.length() > Texts.MOST_CHARACTERS) {
        cut = true;
        now.delete(Texts.MOST_CHARACTERS, now.length()); // calls this again
        return;
      }
      cut &= now.length() == Texts.MOST_CHARACTERS;
      handler.postDelayed(classify, PAUSE_MS);
    }
  }
}
