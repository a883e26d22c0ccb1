package dev.edgebert.demo;

import android.content.ActivityNotFoundException;
import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import android.os.Handler;
import android.os.Looper;
import android.text.TextUtils;
import android.view.View;
import android.view.ViewGroup;
import android.widget.RadioButton;
import android.widget.TextView;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.Manifest;
import dev.edgebert.core.bundle.ModelEntry;
import java.io.File;
import java.util.ArrayList;
import java.util.List;

/** Which bundle to use: those that are there, or another from the system's file picker. */
public final class BundlesActivity extends Screen {
  private static final int PICK_FOLDER = 1;
  private static final int PICK_ZIP = 2;

  private final Handler main = new Handler(Looper.getMainLooper());

  @Override
  int layout() {
    return R.layout.bundles;
  }

  @Override
  protected void onCreate(Bundle state) {
    super.onCreate(state);
    File pushed = app().bundles().pushed();
    String push = pushed == null ? null : getString(R.string.push_how, pushed.getPath());
    show(findViewById(R.id.push), push);
    findViewById(R.id.pick_folder)
        .setOnClickListener(
            view -> pick(new Intent(Intent.ACTION_OPEN_DOCUMENT_TREE), PICK_FOLDER));
    findViewById(R.id.pick_zip)
        .setOnClickListener(
            view ->
                pick(
                    new Intent(Intent.ACTION_OPEN_DOCUMENT)
                        .addCategory(Intent.CATEGORY_OPENABLE)
                        .setType("application/zip"),
                    PICK_ZIP));
    show(findViewById(R.id.message), null);
  }

  @Override
  protected void onStart() {
    super.onStart();
    show();
  }

  private void pick(Intent intent, int code) {
    try {
      startActivityForResult(intent, code);
    } catch (ActivityNotFoundException none) {
      show(findViewById(R.id.message), getString(R.string.problem_unreadable, intent.getAction()));
    }
  }

  @Override
  protected void onActivityResult(int code, int result, Intent data) {
    super.onActivityResult(code, result, data);
    Uri picked = result == RESULT_OK && data != null ? data.getData() : null;
    if (picked == null) {
      return;
    }
    show(findViewById(R.id.message), getString(R.string.copying));
    PickedBundle bundle = new PickedBundle(app(), picked, code == PICK_FOLDER);
    Thread thread = new Thread(() -> install(bundle), "install");
    thread.start();
  }

  private void install(PickedBundle bundle) {
    String message;
    try {
      String name = bundle.install();
      app().bundles().choose(name);
      message = getString(R.string.installed, name);
    } catch (BundleException error) {
      message = Problems.text(this, error);
    } catch (RuntimeException error) { // the picked app's provider has failed
      message = getString(R.string.problem_unreadable, error.getMessage());
    }
    String text = message;
    main.post(
        () -> {
          show(findViewById(R.id.message), text);
          show();
        });
  }

  private void show() {
    ViewGroup list = findViewById(R.id.list);
    list.removeAllViews();
    String chosen = app().bundles().chosen();
    for (String name : app().bundles().names()) {
      View card = inflate(this, R.layout.bundle, list);
      RadioButton button = card.findViewById(R.id.name);
      button.setText(name);
      button.setChecked(name.equals(chosen));
      try {
        fill(card, app().bundles().open(name));
      } catch (BundleException error) {
        show(card.findViewById(R.id.warning), Problems.text(this, error));
      }
      card.setOnClickListener(
          view -> {
            app().bundles().choose(name);
            show();
          });
    }
    if (list.getChildCount() == 0) {
      BundleException none = new BundleException(BundleException.Problem.MISSING, "");
      show(findViewById(R.id.message), Problems.text(this, none));
    }
  }

  private void fill(View card, dev.edgebert.core.bundle.Bundle bundle) {
    Manifest manifest = bundle.manifest();
    List<String> parts = new ArrayList<>();
    for (ModelEntry model : manifest.models) {
      if (bundle.has(model.file)) {
        parts.add(model.file + " " + model.scheme);
      }
    }
    String origin = getString(app().bundles().origin(bundle.name()));
    String line = getString(R.string.bundle_line, manifest.model, manifest.target, origin);
    String details = line + "\n" + TextUtils.join("\n", parts);
    if (!manifest.attributions.isEmpty()) {
      details += "\n" + TextUtils.join("\n", manifest.attributions);
    }
    show(card.findViewById(R.id.details), details);
    List<String> warnings = new ArrayList<>();
    if (!manifest.arch.equals(AndroidDevice.arch())) {
      warnings.add(getString(R.string.other_arch, manifest.arch, AndroidDevice.arch()));
    }
    if (manifest.passed == null) {
      warnings.add(getString(R.string.no_proof));
    } else if (!manifest.passed) {
      warnings.add(getString(R.string.not_passed));
    }
    show((TextView) card.findViewById(R.id.warning), TextUtils.join("\n", warnings));
  }
}
