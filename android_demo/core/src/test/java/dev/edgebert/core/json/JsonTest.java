package dev.edgebert.core.json;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.Test;

/** JSON is read strictly, and what is written can be read. */
public class JsonTest {

  private static Object parse(String text) throws IOException {
    Object fromReader = Json.parse(new StringReader(text));
    byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
    assertEquals(fromReader, Json.parse(new ByteArrayInputStream(utf8)));
    return fromReader;
  }

  private static void refused(byte[] text) throws IOException {
    try {
      Object found = Json.parse(new ByteArrayInputStream(text));
      fail(new String(text, StandardCharsets.ISO_8859_1) + " gave " + found);
    } catch (JsonException e) {
      assertTrue(e.getMessage(), e.getMessage().contains("character"));
    }
  }

  @Test
  public void everyKindIsRead() throws IOException {
    Map<?, ?> found =
        (Map<?, ?>)
            parse(
                " {\"a\" : [1, -2.5e3, true, false, null, {}, []],\n"
                    + "\t\"\\u00e9\\ud83d\\ude00\":\"\\\"\\\\\\/\\b\\f\\n"
                    + "\\r"
                    + "\\t\", \"big\": 12345678901234567890, \"z\": -0}\r");
    List<?> list = (List<?>) found.get("a");
    assertEquals(1L, list.get(0));
    assertEquals(-2500.0, list.get(1));
    assertEquals(true, list.get(2));
    assertNull(list.get(4));
    assertEquals("\"\\/\b\f\n\r\t", found.get("\u00e9\ud83d\ude00"));
    assertEquals(12345678901234567890.0, found.get("big"));
    assertEquals(-0.0, found.get("z"));
    assertEquals(
        Arrays.asList("a", "\u00e9\ud83d\ude00", "big", "z").toString(), found.keySet().toString());
  }

  @Test
  public void whatIsNoJsonIsRefused() throws IOException {
    String[] texts = {
      "",
      " ",
      "{",
      "[",
      "[1,]",
      "{\"a\":1,}",
      "[1 2]",
      "{\"a\" 1}",
      "{a:1}",
      "[,1]",
      "'a'",
      "01",
      "-",
      "1.",
      ".5",
      "1e",
      "+1",
      "NaN",
      "tru",
      "nulll",
      "\"a",
      "\"\n\"",
      "\"\\x\"",
      "\"\\u12g4\"",
      "\"\\ud800\"",
      "\"\\ud800\\ud800\"",
      "\"\\udc00\"",
      "[1]]",
      "{}{}",
      "[1}",
      "{\"a\":1,\"a\":2}",
      "// c\n1",
      "\ufeff1",
      "{1:2}"
    };
    for (String text : texts) {
      refused(text.getBytes(StandardCharsets.UTF_8));
    }
    StringBuilder deep = new StringBuilder();
    for (int i = 0; i < 100_000; i++) {
      deep.append('[');
    }
    refused(deep.toString().getBytes(StandardCharsets.UTF_8));
  }

  @Test
  public void whatIsNoUtf8IsRefused() throws IOException {
    int[][] bytes = {
      {0x80},
      {0xC0, 0xAF},
      {0xC3},
      {0xE0, 0x80, 0x80},
      {0xED, 0xA0, 0x80},
      {0xF0, 0x80, 0x80, 0x80},
      {0xF4, 0x90, 0x80, 0x80},
      {0xF8, 0x88, 0x80, 0x80},
      {0xFF}
    };
    for (int[] wrong : bytes) {
      byte[] text = new byte[wrong.length + 2];
      text[0] = '"';
      for (int i = 0; i < wrong.length; i++) {
        text[i + 1] = (byte) wrong[i];
      }
      text[text.length - 1] = '"';
      refused(text);
    }
  }

  @Test
  public void longTextsPassTheBuffers() throws IOException {
    StringBuilder text = new StringBuilder();
    while (text.length() < 300_000) {
      text.append("ab\u00e9\u4e00\ud83d\ude00").append(text.length());
    }
    StringBuilder out = new StringBuilder();
    new JsonWriter(out).value(text.toString());
    assertEquals(text.toString(), parse(out.toString()));
  }

  @Test
  public void whatIsWrittenIsRead() throws IOException {
    StringBuilder out = new StringBuilder();
    new JsonWriter(out)
        .beginObject()
        .name("text \u0001\"\\\u2028")
        .value("\n\t\ud83d\ude00 \ud800")
        .name("numbers")
        .beginArray()
        .value(1L)
        .value(-1.25)
        .value(1e300)
        .endArray()
        .name("empty")
        .beginObject()
        .endObject()
        .name("nothing")
        .value((String) null)
        .name("yes")
        .value(true)
        .endObject();
    Map<?, ?> found = (Map<?, ?>) parse(out.toString());
    assertEquals("\n\t\ud83d\ude00 \ufffd", found.get("text \u0001\"\\\u2028"));
    assertEquals(Arrays.asList(1L, -1.25, 1e300), found.get("numbers"));
    assertNull(found.get("nothing"));
    StringBuilder again = new StringBuilder();
    new JsonWriter(again).any(found);
    assertEquals(found, parse(again.toString()));
  }

  @Test
  public void whatWouldNotBeJsonIsNotWritten() throws IOException {
    try {
      new JsonWriter(new StringBuilder()).value(Double.NaN);
      fail();
    } catch (IllegalArgumentException e) {
      assertTrue(e.getMessage().contains("NaN"));
    }
    try {
      new JsonWriter(new StringBuilder()).beginObject().value(1);
      fail();
    } catch (IllegalStateException e) {
      assertTrue(e.getMessage().contains("name"));
    }
  }
}
