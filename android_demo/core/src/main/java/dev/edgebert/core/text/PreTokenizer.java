package dev.edgebert.core.text;

import java.util.List;

/** A step that splits a text into the pieces that the model sees one by one. */
interface PreTokenizer {

  /** Adds the pieces of a text; empty ones may be among them. */
  void split(NormalizedText text, List<NormalizedText> out);
}
