package io.streamshaper.aqm;

/**
 * A record as the scheduler sees it, without its payload. A packet is in at most one scheduler, at
 * most once. Times are nanoseconds on the scheduler's time line. Not thread-safe.
 */
public class Packet {
  /** Bit of {@link #marks()}: CoDel or the ceiling would have dropped this packet. */
  public static final int CODEL_MARK = 1;

  /** Bit of {@link #marks()}: the sojourn exceeded the mark threshold. */
  public static final int THRESHOLD_MARK = 2;

  /** Expiry of a packet that never expires. */
  public static final long NEVER = Long.MAX_VALUE;

  private final long timestampNanos;
  private final long expiresNanos;
  private final long cost;
  private final long bytes;
  private final boolean markable;
  private byte marks;

  Packet next;

  /**
   * @param timestampNanos the enqueue time, from which the sojourn counts
   * @param cost what scheduling and backlogs count, at least 1
   * @param bytes what counts against the byte limit, at least 0
   * @param markable whether the packet may be marked instead of dropped
   * @param expiresNanos the last instant at which it may leave, or {@link #NEVER}
   * @throws IllegalArgumentException if cost or bytes is out of range
   */
  public Packet(long timestampNanos, long cost, long bytes, boolean markable, long expiresNanos) {
    if (cost < 1) {
      throw new IllegalArgumentException("cost must be at least 1, was " + cost);
    }
    if (bytes < 0) {
      throw new IllegalArgumentException("bytes must be at least 0, was " + bytes);
    }
    this.timestampNanos = timestampNanos;
    this.cost = cost;
    this.bytes = bytes;
    this.markable = markable;
    this.expiresNanos = expiresNanos;
  }

  /** The enqueue time. */
  public final long timestampNanos() {
    return timestampNanos;
  }

  /** The last instant at which the packet may leave, or {@link #NEVER}. */
  public final long expiresNanos() {
    return expiresNanos;
  }

  /** What scheduling and backlogs count, at least 1. */
  public final long cost() {
    return cost;
  }

  /** What counts against the byte limit. */
  public final long bytes() {
    return bytes;
  }

  /** Whether the packet may be marked instead of dropped. */
  public final boolean markable() {
    return markable;
  }

  /** {@link #CODEL_MARK} and {@link #THRESHOLD_MARK}, as far as they were set; else 0. */
  public final int marks() {
    return marks;
  }

  /** Time since the enqueue time: 0 if that is in the future, never wrapped. */
  public final long sojournNanos(long nowNanos) {
    return sojournNanos(timestampNanos, nowNanos);
  }

  /** The same, of a packet with this enqueue time. */
  public static long sojournNanos(long timestampNanos, long nowNanos) {
    if (nowNanos <= timestampNanos) {
      return 0;
    }
    long sojourn = nowNanos - timestampNanos;
    return sojourn < 0 ? Long.MAX_VALUE : sojourn;
  }

  final void mark(int bit) {
    marks |= (byte) bit;
  }
}
