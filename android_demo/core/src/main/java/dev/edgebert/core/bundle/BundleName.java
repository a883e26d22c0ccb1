package dev.edgebert.core.bundle;

import java.util.regex.Pattern;

/** Names that become file names: of bundles, of results, of files in a bundle. */
public final class BundleName {
  private static final Pattern PLAIN = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,99}");

  private BundleName() {}

  /**
   * Whether a name is a plain file name: no separator, no leading dot, 100 ASCII characters at
   * most.
   */
  public static boolean isPlain(String name) {
    return name != null && PLAIN.matcher(name).matches();
  }

  /** Returns the name, or throws BAD_NAME. */
  public static String check(String name) throws BundleException {
    if (!isPlain(name)) {
      throw new BundleException(BundleException.Problem.BAD_NAME, shorten(name));
    }
    return name;
  }

  /** A plain name made of any text, for a folder or an archive that somebody picked. */
  public static String from(String text) {
    String plain = text.replaceAll("[^A-Za-z0-9._-]+", "-").replaceAll("^[^A-Za-z0-9]+", "");
    plain = plain.length() > 100 ? plain.substring(0, 100) : plain;
    return plain.isEmpty() ? "bundle" : plain;
  }

  private static String shorten(String name) {
    String text = String.valueOf(name);
    return text.length() > 40 ? text.substring(0, 40) + "\u2026" : text;
  }
}
