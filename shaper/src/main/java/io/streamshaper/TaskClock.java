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

  /** Every Kafka Streams thread has it in its name; a test driver runs on the test's thread. */
  private static final String STREAM_THREAD = "-StreamThread-";

  private final LongSupplier wallMs;
  private final LongSupplier elapsedNanos;
  private final boolean stream;
  private final long plausibleMs;
  private final Runnable onStepBack;
  private long wallNowMs;
  private long setBackMs;
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
      elapsedNanos = System::nanoTime;
    } else {
      wallMs = context::currentSystemTimeMs;
      elapsedNanos = () -> (readWallMs() + setBackMs) * NANOS_PER_MS;
    }
    stream = time == ShaperOptions.Time.STREAM;
    nowMs = stream ? streamTimeMs : NO_TIME;
    this.plausibleMs = plausibleMs;
    this.onStepBack = onStepBack;
    wallNowMs = wallMs.getAsLong();
  }

  /** Whether stream time advances with a record of this timestamp. */
  boolean advancesWith(long timestampMs) {
    return stream && timestampMs > nowMs && timestampMs - readWallMs() <= plausibleMs;
  }

  /** Advances stream time. */
  void advance(long timestampMs) {
    nowMs = timestampMs;
  }

  /** The present as last read, once a record of this timestamp has been taken in. */
  long lastMsWith(long timestampMs) {
    return advancesWith(timestampMs) ? timestampMs : lastMs();
  }

  /** The present as last read: a look at the clock costs as much as a decision. */
  long lastMs() {
    return Math.max(0, nowMs);
  }

  /** The same, in the unit of the scheduler. */
  long lastNanos() {
    return lastMs() * NANOS_PER_MS;
  }

  /** Once a record of this timestamp has been taken in. */
  long lastNanosWith(long timestampMs) {
    return lastMsWith(timestampMs) * NANOS_PER_MS;
  }

  /** Milliseconds since the epoch. */
  long nowMs() {
    if (!stream) {
      nowMs = readWallMs();
    }
    return lastMs();
  }

  /** The same, in the unit of the scheduler. */
  long nowNanos() {
    return nowMs() * NANOS_PER_MS;
  }

  /** The same for durations. */
  long elapsedNanosWith(long timestampMs) {
    return advancesWith(timestampMs) ? timestampMs * NANOS_PER_MS : elapsedNanos();
  }

  /** A clock for durations, of no particular origin, that no correction of the time disturbs. */
  long elapsedNanos() {
    return stream ? nowNanos() : elapsedNanos.getAsLong();
  }

  private long readWallMs() {
    long readMs = wallMs.getAsLong();
    long stepMs = readMs - wallNowMs;
    wallNowMs = readMs;
    if (stepMs < 0) {
      setBackMs -= stepMs;
      onStepBack.run();
    }
    return readMs;
  }
}
