package dev.edgebert.core.bundle;

import dev.edgebert.core.bundle.BundleException.Problem;

/** One line of rows.jsonl: a text, or its token ids, whose logits are asked for. */
public final class TextRow {
  /** What the answer is told apart by. */
  public final int id;

  /** Null where the token ids are given. */
  public final String text;

  /** Null for a single text. */
  public final String textPair;

  /** Null where the text is given. */
  public final int[] ids;

  /** As many as ids. */
  public final int[] typeIds;

  TextRow(Fields fields) throws BundleException {
    if (fields.has("tokens")) { // words that are split already: this tokenizer takes texts
      throw new BundleException(Problem.TOKENIZER_REFUSED, fields.where() + ", tokens");
    }
    id = fields.integer("id", 0, Integer.MAX_VALUE);
    ids = fields.has("ids") ? fields.integers("ids") : null;
    boolean typed = ids != null && fields.has("type_ids") && !fields.list("type_ids").isEmpty();
    typeIds = typed ? fields.integers("type_ids") : new int[ids == null ? 0 : ids.length];
    text = ids == null ? fields.text("text") : null;
    textPair = fields.has("text_pair") ? fields.text("text_pair") : null;
    if (ids != null && typeIds.length != ids.length) {
      throw new BundleException(Problem.NOT_A_BUNDLE, fields.where());
    }
  }
}
