package dev.edgebert.demo;

import android.content.Context;
import android.content.SharedPreferences;
import dev.edgebert.core.bundle.Bundle;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import dev.edgebert.core.bundle.BundleFiles;
import dev.edgebert.core.bundle.BundleInstaller;
import dev.edgebert.core.bundle.BundleName;
import dev.edgebert.core.bundle.FolderFiles;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The bundles on this device: pushed by adb, picked, or in the app. Of one name the first counts.
 */
final class Bundles {
  private static final String CHOSEN = "bundle";

  private final Context context;
  private final SharedPreferences preferences;

  Bundles(Context context) {
    this.context = context;
    preferences = context.getSharedPreferences("app", Context.MODE_PRIVATE);
    BundleInstaller.clean(picked());
  }

  /** Where picked bundles are copied to. */
  File picked() {
    return new File(context.getFilesDir(), AssetFiles.FOLDER);
  }

  /** Where adb puts bundles; null while the storage is not there. */
  File pushed() {
    File folder = context.getExternalFilesDir(null);
    return folder == null ? null : new File(folder, AssetFiles.FOLDER);
  }

  /** Names, those of the app last. */
  List<String> names() {
    List<String> names = new ArrayList<>();
    add(names, folders(pushed()));
    add(names, folders(picked()));
    add(names, assets());
    return names;
  }

  /** The chosen one, else the first; null where there is none. */
  String chosen() {
    List<String> names = names();
    String chosen = preferences.getString(CHOSEN, null);
    return names.contains(chosen) ? chosen : names.isEmpty() ? null : names.get(0);
  }

  void choose(String name) {
    preferences.edit().putString(CHOSEN, name).apply();
  }

  /** Opens a bundle by its name; null stands for none. */
  Bundle open(String name) throws BundleException {
    if (name == null) {
      throw new BundleException(Problem.MISSING, "");
    }
    return Bundle.open(find(BundleName.check(name)));
  }

  /** A string resource: where a bundle comes from. */
  int origin(String name) {
    return folders(pushed()).contains(name)
        ? R.string.from_push
        : folders(picked()).contains(name) ? R.string.from_picker : R.string.from_app;
  }

  private BundleFiles find(String name) {
    for (File parent : new File[] {pushed(), picked()}) {
      if (folders(parent).contains(name)) {
        return new FolderFiles(new File(parent, name));
      }
    }
    return new AssetFiles(context.getAssets(), name);
  }

  private static List<String> folders(File parent) {
    List<String> names = new ArrayList<>();
    File[] files = parent == null ? null : parent.listFiles();
    for (File file : files == null ? new File[0] : files) {
      if (file.isDirectory()) {
        names.add(file.getName());
      }
    }
    return names;
  }

  private List<String> assets() {
    try {
      List<String> names = new ArrayList<>();
      for (String path : context.getAssets().list(AssetFiles.FOLDER)) {
        names.add(path.split("/")[0]); // a phone lists names, Robolectric whole paths
      }
      return names;
    } catch (IOException error) {
      return new ArrayList<>();
    }
  }

  private static void add(List<String> names, List<String> more) {
    List<String> sorted = new ArrayList<>(more);
    sorted.sort(null);
    for (String name : sorted) {
      if (BundleName.isPlain(name) && !names.contains(name)) {
        names.add(name);
      }
    }
  }
}
