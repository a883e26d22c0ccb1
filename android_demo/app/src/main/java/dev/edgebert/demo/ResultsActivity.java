package dev.edgebert.demo;

import android.content.Intent;
import android.os.Bundle;
import android.text.TextUtils;
import android.view.View;
import android.view.ViewGroup;
import android.widget.TextView;
import dev.edgebert.core.measure.ResultFile;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The measurements that were made on this phone: read, share as text, delete. */
public final class ResultsActivity extends Screen {
  private ViewGroup content;

  @Override
  int layout() {
    return R.layout.results;
  }

  @Override
  protected void onCreate(Bundle state) {
    super.onCreate(state);
    content = findViewById(R.id.list);
  }

  @Override
  protected void onStart() {
    super.onStart();
    show();
  }

  private void show() {
    content.removeAllViews();
    List<File> files = app().results().list();
    show(findViewById(R.id.message), files.isEmpty() ? getString(R.string.no_results) : null);
    for (File file : files) {
      View card = inflate(this, R.layout.result, content);
      try {
        fill(card, Results.read(file));
        card.findViewById(R.id.share).setOnClickListener(view -> share(file));
      } catch (IOException | ClassCastException | NullPointerException damaged) {
        // Written whole by this app; another hand has changed it.
        show(card.findViewById(R.id.heading), file.getName());
        String unreadable = getString(R.string.problem_unreadable, file.getName());
        show(card.findViewById(R.id.warning), unreadable);
        card.findViewById(R.id.share).setVisibility(View.GONE);
      }
      card.findViewById(R.id.delete)
          .setOnClickListener(
              view -> {
                file.delete();
                show();
              });
    }
  }

  private void fill(View card, Map<?, ?> result) {
    show(card.findViewById(R.id.heading), (String) result.get("bundle_name"));
    show(card.findViewById(R.id.when), (String) result.get("started_at"));
    List<String> lines = new ArrayList<>();
    List<?> runs = (List<?>) result.get("answers");
    for (Object run : runs) {
      lines.add(runLine((Map<?, ?>) run));
    }
    if (!runs.isEmpty()) {
      Map<?, ?> first = (Map<?, ?>) runs.get(0);
      if (first.get("peak_mb") != null) {
        lines.add(
            getString(
                R.string.memory_line,
                value(first, "load_ms"),
                value(first, "first_run_ms"),
                value(first, "peak_mb")));
      }
    }
    Map<?, ?> tokenizer = (Map<?, ?>) result.get("tokenizer");
    if (tokenizer != null) {
      lines.add(getString(R.string.tokenizer_line, value(tokenizer, "p50_ms")));
    }
    Map<?, ?> sustained = (Map<?, ?>) result.get("sustained");
    if (sustained != null) {
      lines.add(getString(R.string.sustained_line, value(sustained, "slowdown")));
    }
    if (result.get("error") != null) {
      lines.add((String) result.get("error"));
    }
    show(card.findViewById(R.id.details), TextUtils.join("\n", lines));
    List<?> reasons = (List<?>) result.get("invalid_because");
    String warning = null;
    if (!reasons.isEmpty()) {
      List<String> texts = new ArrayList<>();
      for (Object reason : reasons) {
        texts.add(reason((String) reason));
      }
      warning = getString(R.string.not_phone, TextUtils.join("; ", texts));
    }
    show(card.findViewById(R.id.warning), warning);
  }

  /** A reason of the document, in the user's language. */
  private String reason(String text) {
    switch (text) {
      case "not a phone: host":
        return getString(R.string.reason_host);
      case "not a phone: emulator":
        return getString(R.string.reason_emulator);
      case "fewer than 1024 inferences or less than 60 s":
        return getString(R.string.reason_rule);
      case "the app left the foreground":
        return getString(R.string.reason_foreground);
      case "battery saver was on":
        return getString(R.string.reason_power_save);
      case "the golden texts failed":
        return getString(R.string.reason_golden);
      default:
        return text;
    }
  }

  private String runLine(Map<?, ?> run) {
    return getString(
        R.string.run_line,
        run.get("file"),
        ((Number) run.get("threads")).intValue(),
        value(run, "p50_ms"),
        value(run, "p90_ms"),
        value(run, "p99_ms"));
  }

  private static String value(Map<?, ?> values, String name) {
    return number(((Number) values.get(name)).doubleValue());
  }

  private void share(File file) {
    try {
      Map<String, Object> values = new LinkedHashMap<>();
      for (Map.Entry<?, ?> entry : Results.read(file).entrySet()) {
        values.put((String) entry.getKey(), entry.getValue());
      }
      Intent send =
          new Intent(Intent.ACTION_SEND)
              .setType("text/plain")
              .putExtra(Intent.EXTRA_SUBJECT, "edgebert " + file.getName())
              .putExtra(Intent.EXTRA_TEXT, ResultFile.text(values));
      startActivity(Intent.createChooser(send, getString(R.string.share_title)));
    } catch (IOException error) {
      show(findViewById(R.id.message), getString(R.string.problem_unreadable, file.getName()));
    }
  }
}
