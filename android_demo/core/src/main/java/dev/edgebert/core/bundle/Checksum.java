package dev.edgebert.core.bundle;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** SHA-256, as manifest.json has it. */
public final class Checksum {
  private static final String HEX = "0123456789abcdef";

  private Checksum() {}

  /** Of what remains in a buffer, whose position stays where it is; 64 hex digits. */
  public static String sha256(ByteBuffer bytes) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(bytes.duplicate());
      StringBuilder text = new StringBuilder(64);
      for (byte value : digest.digest()) {
        text.append(HEX.charAt(value >> 4 & 15)).append(HEX.charAt(value & 15));
      }
      return text.toString();
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // every Java and every Android has SHA-256
    }
  }
}
