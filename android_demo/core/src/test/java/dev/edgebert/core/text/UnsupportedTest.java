package dev.edgebert.core.text;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Random;
import org.junit.Test;

/** Files that are damaged or ask for more are refused, and the message says why. */
public class UnsupportedTest {

  private static final String MODEL =
      "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}";

  private static void refused(String json, String... words) {
    try {
      load(json.getBytes(StandardCharsets.UTF_8));
      fail(json);
    } catch (TokenizerException e) {
      for (String word : words) {
        assertTrue(e.getMessage(), e.getMessage().contains(word));
      }
    }
  }

  private static Tokenizer load(byte[] json) throws TokenizerException {
    return Tokenizer.load(new ByteArrayInputStream(json));
  }

  @Test
  public void aSmallModelIsTaken() throws Exception {
    Tokenizer tokenizer = load(("{" + MODEL + "}").getBytes(StandardCharsets.UTF_8));
    assertEquals(0, tokenizer.encode("a", null, 4).ids[0]);
  }

  @Test
  public void componentsAreNamed() {
    refused("{" + MODEL + ",\"normalizer\":{\"type\":\"ByteLevel\"}}", "normalizer ByteLevel");
    refused("{" + MODEL + ",\"pre_tokenizer\":{\"type\":\"Digits\"}}", "pre_tokenizer Digits");
    refused("{" + MODEL + ",\"post_processor\":{\"type\":\"Own\"}}", "post_processor Own");
    refused(
        "{"
            + MODEL
            + ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":"
            + "[{\"type\":\"Split\"}]}}",
        "pre_tokenizer Split");
    refused(
        "{"
            + MODEL
            + ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\s+\"},"
            + "\"content\":\" \"}}",
        "normalizer Replace",
        "\\s+");
    refused("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{}}}", "model WordLevel");
    refused("{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{},\"merges\":[]}}", "dropout");
    refused("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1.5]]}}", "unk_id");
    refused("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "\"ab\"");
    refused("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", "[UNK]");
    refused("{" + MODEL + ",\"truncation\":{\"strategy\":\"Own\"}}", "truncation strategy Own");
    refused(
        "{" + MODEL + ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AA\"}}",
        "Precompiled");
  }

  @Test
  public void filesThatAreNoTokenizerAreRefused() {
    refused("", "cannot be read");
    refused("{}", "no model");
    refused("[]", "cannot be read");
    refused("{" + MODEL, "cannot be read");
    refused("{" + MODEL + "} x", "text after");
    refused("{" + MODEL + ",\"normalizer\":3}", "normalizer");
    refused("{" + MODEL + ",\"added_tokens\":[{}]}", "added_tokens", "content");
  }

  @Test
  public void damageIsRefusedAndNothingElseIsThrown() throws Exception {
    Random random = new Random(5);
    for (String name : new String[] {"unigram-case", "xlnet", "bert-cased"}) {
      byte[] whole = Files.readAllBytes(new File(Values.folder(), name + ".json").toPath());
      for (int i = 0; i < 60; i++) {
        byte[] damaged = whole.clone();
        for (int j = 0; j < 3; j++) {
          int range = random.nextBoolean() ? 3000 : damaged.length;
          damaged[random.nextInt(range)] = (byte) random.nextInt(128);
        }
        try {
          load(damaged).encode("Good film, \uff21 \u00e9t\u00e9 \ud83d\ude00 2\u2026", "b", 64);
        } catch (TokenizerException e) {
          assertTrue(e.getMessage().length() > 0);
        }
      }
    }
  }
}
