package dev.edgebert.core.text;

/** A token that is found in the text before, or just after, it is normalized. */
final class AddedToken {

  final String content;
  final boolean singleWord;
  final boolean stripsLeft;
  final boolean stripsRight;
  final boolean normalized;

  AddedToken(
      String content,
      boolean singleWord,
      boolean stripsLeft,
      boolean stripsRight,
      boolean normalized) {
    this.content = content;
    this.singleWord = singleWord;
    this.stripsLeft = stripsLeft;
    this.stripsRight = stripsRight;
    this.normalized = normalized;
  }
}
