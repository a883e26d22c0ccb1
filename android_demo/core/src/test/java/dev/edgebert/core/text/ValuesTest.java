package dev.edgebert.core.text;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.After;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;
import org.junit.runners.Parameterized.Parameters;

/** Ids, offsets and types equal those of Hugging Face's tokenizers, for every row and locale. */
@RunWith(Parameterized.class)
public class ValuesTest {

  private final String name;
  private final Locale before = Locale.getDefault();

  public ValuesTest(String name) {
    this.name = name;
  }

  @Parameters(name = "{0}")
  public static List<String> names() {
    return Values.names();
  }

  @After
  public void restoreLocale() {
    Locale.setDefault(before);
  }

  @Test
  public void equalsHuggingFace() throws Exception {
    check();
  }

  @Test
  public void equalsHuggingFaceOnATurkishPhone() throws Exception {
    Locale.setDefault(new Locale("tr", "TR"));
    assertEquals("t\u0131tle", "TITLE".toLowerCase()); // the trap is there
    check();
  }

  private void check() throws Exception {
    Tokenizer tokenizer = Values.tokenizer(name);
    List<Values.Row> rows = Values.rows();
    List<String> expected = Values.expected(name);
    assertEquals(expected.size(), rows.size());
    assertTrue(rows.size() + " rows", rows.size() >= 10_000);
    List<String> wrong = new ArrayList<>();
    for (int i = 0; i < rows.size(); i++) {
      Values.Row row = rows.get(i);
      String found = Values.written(tokenizer, row);
      if (!found.equals(expected.get(i))) {
        String texts = Values.visible(row.text) + (row.pair == null ? "" : " + " + row.pair);
        wrong.add(i + ": " + texts + "\n  is     " + found + "\n  not    " + expected.get(i));
      }
    }
    String first = String.join("\n", wrong.subList(0, Math.min(5, wrong.size())));
    assertEquals(name + ", of " + rows.size() + " rows:\n" + first + "\n", 0, wrong.size());
  }
}
