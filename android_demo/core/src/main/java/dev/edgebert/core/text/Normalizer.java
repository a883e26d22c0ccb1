package dev.edgebert.core.text;

/** A step that changes a text before it is split. */
interface Normalizer {

  NormalizedText normalize(NormalizedText text);
}
