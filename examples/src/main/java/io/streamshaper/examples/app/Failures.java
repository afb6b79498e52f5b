package io.streamshaper.examples.app;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;

/** How many failures a while may have. Thread-safe. */
final class Failures {
  private final int most;
  private final long whileNanos;
  private final Deque<Long> nanos = new ArrayDeque<>();

  Failures(int most, Duration aWhile) {
    this.most = most;
    whileNanos = aWhile.toNanos();
  }

  /** Counts one more; false if there have been more than may be. */
  synchronized boolean bearable(long nowNanos) {
    while (!nanos.isEmpty() && nowNanos - nanos.peekFirst() > whileNanos) {
      nanos.removeFirst();
    }
    nanos.addLast(nowNanos);
    return nanos.size() <= most;
  }
}
