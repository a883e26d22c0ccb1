package dev.edgebert.core.text;

/** Replaces every occurrence of a string, or every run of one character, by a string. */
final class Replacement implements Normalizer {

  private final int[] pattern;
  private final int[] content;
  private final int shortestRun;

  private Replacement(int[] pattern, int[] content, int shortestRun) {
    this.pattern = pattern;
    this.content = content;
    this.shortestRun = shortestRun;
  }

  static Replacement ofString(String pattern, String content) {
    return new Replacement(points(pattern), points(content), 0);
  }

  /** The regular expression {@code c{n,}}: runs of at least n of the character c. */
  static Replacement ofRuns(int character, int shortest, String content) {
    return new Replacement(new int[] {character}, points(content), shortest);
  }

  private static int[] points(String text) {
    return NormalizedText.of(text).toArray();
  }

  @Override
  public NormalizedText normalize(NormalizedText text) {
    TextBuilder out = new TextBuilder(text.length());
    for (int i = 0; i < text.length(); ) {
      int end = match(text, i);
      if (end == i) {
        out.copy(text, i++);
      } else {
        for (int c : content) {
          out.replace(text, end - 1, c);
        }
        i = end;
      }
    }
    return out.build();
  }

  /** The end of the match that starts here, or the start where there is none. */
  private int match(NormalizedText text, int start) {
    if (shortestRun > 0) {
      int end = start;
      while (end < text.length() && text.at(end) == pattern[0]) {
        end++;
      }
      return end - start >= shortestRun ? end : start;
    }
    if (start + pattern.length > text.length()) {
      return start;
    }
    for (int i = 0; i < pattern.length; i++) {
      if (text.at(start + i) != pattern[i]) {
        return start;
      }
    }
    return start + pattern.length;
  }
}
