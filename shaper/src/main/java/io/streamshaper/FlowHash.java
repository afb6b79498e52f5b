package io.streamshaper;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.function.ToIntFunction;
import org.apache.kafka.common.utils.Bytes;

/**
 * Hashes flows so that who chooses keys cannot choose them to collide: a polynomial over the prime
 * 2^61 - 1 at a point that nobody knows (Carter and Wegman, "Universal Classes of Hash Functions",
 * 1979). {@link Bytes#hashCode} is a polynomial at 31. Thread-safe.
 */
final class FlowHash implements ToIntFunction<Bytes> {
  private static final long PRIME = (1L << 61) - 1;
  private static final long WORD = 0xFFFF_FFFFL;
  private static final VarHandle WORDS =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private final long point;

  /**
   * @param random whatever nobody can guess
   */
  FlowHash(long random) {
    point = Math.floorMod(random, PRIME);
  }

  /**
   * @param flow null is the flow of records without a key
   */
  @Override
  public int applyAsInt(Bytes flow) {
    if (flow == null) {
      return 0;
    }
    byte[] bytes = flow.get();
    long hash = times(1 + bytes.length); // else leading zeros would not count
    int i = 0;
    for (; i <= bytes.length - Integer.BYTES; i += Integer.BYTES) {
      hash = times(hash + ((int) WORDS.get(bytes, i) & WORD));
    }
    long rest = 0;
    for (; i < bytes.length; i++) {
      rest = rest << Byte.SIZE | (bytes[i] & 0xFF);
    }
    return (int) times(hash + rest);
  }

  /** The product with the point, modulo the prime; for numbers below 2^62. */
  private long times(long number) {
    long high = Math.multiplyHigh(number, point);
    long low = number * point;
    long sum = (low & PRIME) + (high << 3 | low >>> 61);
    return sum >= PRIME ? sum - PRIME : sum;
  }
}
