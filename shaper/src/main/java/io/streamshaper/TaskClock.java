package io.streamshaper;

import java.util.function.LongSupplier;
import org.apache.kafka.streams.processor.api.ProcessorContext;

/**
 * The present, as one task sees it: wall-clock time or stream time. The wall clock may be
 * corrected, also backwards, and is followed: were it clamped, records would look older than they
 * are, and expire, until it had caught up. Not thread-safe.
 *
 * <p>{@link ProcessorContext#currentSystemTimeMs} stands still for a whole batch of records, tens
 * of milliseconds; a queue needs a clock that moves while it is served. In a test driver, though,
 * the driver's clock must rule.
 */
final class TaskClock {
  static final long NO_TIME = -1;

  private static final long NANOS_PER_MS = 1_000_000;

  /**
   * In between, the clock for durations says what the wall clock would: one look in place of two.
   */
  private static final long WALL_CLOCK_NANOS = 10 * NANOS_PER_MS;

  /** Every Kafka Streams thread has it in its name; a test driver runs on the test's thread. */
  private static final String STREAM_THREAD = "-StreamThread-";

  private final LongSupplier wallMs;
  private final LongSupplier timer;
  private final long wallClockNanos;
  private final boolean stream;
  private final long plausibleMs;
  private final Runnable onStepBack;

  /** What the wall clock showed when it was last read, and how far it was set back in all. */
  private long wallReadMs;

  private long setBackMs;

  /** When that was, by the timer. */
  private long readNanos;

  private long wallNowMs;
  private long elapsedNanos;
  private long nowMs;

  /**
   * Must be called on the task's thread.
   *
   * @param streamTimeMs the largest timestamp seen before a restart; -1 if there is none
   * @param plausibleMs how far ahead of the present a timestamp is believed
   * @param onStepBack called each time that the wall clock went back
   */
  TaskClock(
      ProcessorContext<?, ?> context,
      ShaperOptions.Time time,
      long streamTimeMs,
      long plausibleMs,
      Runnable onStepBack) {
    if (Thread.currentThread().getName().contains(STREAM_THREAD)) {
      wallMs = System::currentTimeMillis;
      timer = System::nanoTime;
      wallClockNanos = WALL_CLOCK_NANOS;
    } else {
      wallMs = context::currentSystemTimeMs;
      timer = () -> (readWallMs() + setBackMs) * NANOS_PER_MS;
      wallClockNanos = 0;
    }
    stream = time == ShaperOptions.Time.STREAM;
    nowMs = stream ? streamTimeMs : NO_TIME;
    this.plausibleMs = plausibleMs;
    this.onStepBack = onStepBack;
    wallReadMs = wallMs.getAsLong();
    readNanos = timer.getAsLong() - wallClockNanos;
    elapsedNanos = nowNanos();
    look();
  }

  /** Looks at the clock: what the others say is of that moment. */
  void look() {
    long timerNanos = timer.getAsLong();
    if (timerNanos - readNanos >= wallClockNanos) {
      readWallMs();
      readNanos = timerNanos;
    }
    wallNowMs = wallReadMs + (timerNanos - readNanos) / NANOS_PER_MS;
    if (!stream) {
      nowMs = wallNowMs;
      elapsedNanos = timerNanos;
    }
  }

  /** Whether stream time advances with a record of this timestamp. */
  boolean advancesWith(long timestampMs) {
    return stream && timestampMs > nowMs && timestampMs - wallNowMs <= plausibleMs;
  }

  /** Advances stream time. */
  void advance(long timestampMs) {
    nowMs = timestampMs;
    elapsedNanos = nowNanos();
  }

  /** Milliseconds since the epoch. */
  long nowMs() {
    return Math.max(0, nowMs);
  }

  /** The same, in the unit of the scheduler. */
  long nowNanos() {
    return nowMs() * NANOS_PER_MS;
  }

  /** A clock for durations, of no particular origin, that no correction of the time disturbs. */
  long elapsedNanos() {
    return elapsedNanos;
  }

  /** What the present will be once a record of this timestamp has been taken in. */
  long nowMsWith(long timestampMs) {
    return advancesWith(timestampMs) ? timestampMs : nowMs();
  }

  /** The same, in the unit of the scheduler. */
  long nowNanosWith(long timestampMs) {
    return nowMsWith(timestampMs) * NANOS_PER_MS;
  }

  /** The same for durations. */
  long elapsedNanosWith(long timestampMs) {
    return advancesWith(timestampMs) ? timestampMs * NANOS_PER_MS : elapsedNanos;
  }

  private long readWallMs() {
    long stepMs = wallMs.getAsLong() - wallReadMs;
    wallReadMs += stepMs;
    if (stepMs < 0) {
      setBackMs -= stepMs;
      onStepBack.run();
    }
    return wallReadMs;
  }
}
