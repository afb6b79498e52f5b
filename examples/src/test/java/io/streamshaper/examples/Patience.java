package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;

/** Waits for a condition, with a bound. */
final class Patience {
  private static final Duration BOUND = Duration.ofMinutes(3);
  private static final long LOOK_AGAIN_NANOS = Duration.ofMillis(20).toNanos();

  private Patience() {}

  static void await(String condition, Callable<Boolean> holds) throws Exception {
    long deadline = System.nanoTime() + BOUND.toNanos();
    while (!holds.call()) {
      assertThat(System.nanoTime()).as("in time: " + condition).isLessThan(deadline);
      LockSupport.parkNanos(LOOK_AGAIN_NANOS);
    }
  }

  /** Until everything sent has been read and nothing is queued any more. */
  static void awaitDrained(Application application, long sent) throws Exception {
    await("all is read", () -> application.committed() >= sent);
    await(
        "nothing is queued or left to read",
        () -> {
          Ledger.Account total = application.ledger().total(key -> true);
          return total.queued() + total.unread() == 0;
        });
  }
}
