package dev.edgebert.demo;

import android.content.ContentResolver;
import android.content.Context;
import android.database.Cursor;
import android.net.Uri;
import android.provider.DocumentsContract;
import android.provider.DocumentsContract.Document;
import android.provider.OpenableColumns;
import dev.edgebert.core.bundle.BundleException;
import dev.edgebert.core.bundle.BundleException.Problem;
import dev.edgebert.core.bundle.BundleInstaller;
import dev.edgebert.core.bundle.BundleName;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;

/** A folder or an archive that somebody picked; copied, since what is picked cannot be mapped. */
final class PickedBundle {
  private final DemoApp app;
  private final ContentResolver resolver;
  private final Uri picked;
  private final boolean folder;

  PickedBundle(DemoApp app, Uri picked, boolean folder) {
    this.app = app;
    this.resolver = ((Context) app).getContentResolver();
    this.picked = picked;
    this.folder = folder;
  }

  /** Copies and checks it; returns its name. */
  String install() throws BundleException {
    Uri document =
        folder
            ? DocumentsContract.buildDocumentUriUsingTree(
                picked, DocumentsContract.getTreeDocumentId(picked))
            : picked;
    String name = BundleName.from(displayName(document).replaceAll("(?i)\\.zip$", ""));
    try (BundleInstaller installer = new BundleInstaller(app.bundles().picked(), name)) {
      if (folder) {
        addTree(installer);
      } else {
        try (InputStream stream = open(picked)) {
          installer.addZip(stream);
        }
      }
      installer.finish();
      return name;
    } catch (IOException error) {
      throw new BundleException(Problem.UNREADABLE, name, error);
    }
  }

  private void addTree(BundleInstaller installer) throws BundleException, IOException {
    Uri children =
        DocumentsContract.buildChildDocumentsUriUsingTree(
            picked, DocumentsContract.getTreeDocumentId(picked));
    String[] columns = {
      Document.COLUMN_DOCUMENT_ID, Document.COLUMN_DISPLAY_NAME, Document.COLUMN_MIME_TYPE
    };
    try (Cursor cursor = resolver.query(children, columns, null, null, null)) {
      while (cursor != null && cursor.moveToNext()) {
        String file = cursor.getString(1);
        boolean inner = Document.MIME_TYPE_DIR.equals(cursor.getString(2));
        if (inner || !BundleName.isPlain(file)) {
          continue;
        }
        Uri document = DocumentsContract.buildDocumentUriUsingTree(picked, cursor.getString(0));
        try (InputStream stream = open(document)) {
          installer.add(file, stream);
        }
      }
    }
  }

  private InputStream open(Uri document) throws IOException {
    InputStream stream = resolver.openInputStream(document);
    if (stream == null) {
      throw new FileNotFoundException(document.getLastPathSegment());
    }
    return stream;
  }

  private String displayName(Uri document) {
    String[] columns = {OpenableColumns.DISPLAY_NAME};
    try (Cursor cursor = resolver.query(document, columns, null, null, null)) {
      boolean named = cursor != null && cursor.moveToFirst() && !cursor.isNull(0);
      return named ? cursor.getString(0) : "bundle";
    }
  }
}
