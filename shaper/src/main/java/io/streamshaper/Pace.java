package io.streamshaper;

import io.streamshaper.aqm.TokenBucket;
import java.time.Duration;

/**
 * When a task serves its queue, and for how long. Forwarding is a synchronous call, so serving
 * keeps the thread from reading, and a quiet key's record that is not read yet cannot overtake
 * anything. So the two alternate in slices of time, measured rather than counted. Not thread-safe;
 * tasks of one thread share the longest slice between those that have a backlog.
 *
 * <p>With a rate, tokens decide, and the slice only bounds the call. Without one the downstream
 * step itself is the bottleneck: while records arrive on time they pass at once; once they arrive
 * late, or something is queued, reading gets a small budget and serving a multiple of the time that
 * reading took.
 */
final class Pace {
  static final Duration TICK = Duration.ofMillis(10);

  private static final long NANOS_PER_MS = 1_000_000;

  /** A record no older than this was read as it came. */
  private static final long FRESH_MS = 20;

  private static final long READ_NANOS = 500_000;

  /** While what is read is late there is more of it to come, and reading is cheap. */
  private static final long READ_LATE_NANOS = 10 * NANOS_PER_MS;

  /** Keeps the downstream step busy 39 parts of 40. */
  private static final long SLICE_PER_GAP = 39;

  private static final long SHORT_SLICE_NANOS = 10 * NANOS_PER_MS;

  /** Far below {@code max.poll.interval.ms} and the transaction timeout, whatever the target. */
  static final long BOUND_NANOS = 1000 * NANOS_PER_MS;

  /** A task's calls all come on its thread. */
  private static final ThreadLocal<Siblings> SIBLINGS = ThreadLocal.withInitial(Siblings::new);

  private final TokenBucket bucket;
  private final long lateMs;
  private final long longSliceNanos;
  private final long idleSliceNanos;
  private final Siblings siblings;

  private boolean backlogged;
  private boolean late;
  private long readsAtTick;
  private boolean cutShort;
  private boolean passing;
  private long sliceNanos;
  private long nextIdleSliceNanos;
  private long sliceStartNanos;
  private long deadlineNanos;

  private long sliceEndNanos;
  private long slicesAtEnd;
  private long slicedNanosAtEnd;

  /** What the paces of one thread know of each other: they share its time. */
  static final class Siblings {
    private int backlogged;
    private long reads;
    private long slices;
    private long slicedNanos;
  }

  /**
   * @param bucket null: work-conserving
   */
  Pace(TokenBucket bucket, Duration target, long nowNanos) {
    this(bucket, target, nowNanos, SIBLINGS.get());
  }

  Pace(TokenBucket bucket, Duration target, long nowNanos, Siblings siblings) {
    this.bucket = bucket;
    this.siblings = siblings;
    long targetNanos = Math.min(target.toNanos(), BOUND_NANOS);
    lateMs = Math.max(FRESH_MS, target.toMillis() / 2);
    longSliceNanos = Math.max(NANOS_PER_MS, targetNanos * 3 / 10);
    idleSliceNanos = Math.max(longSliceNanos, targetNanos);
    inputFlows();
    beginGap(nowNanos);
  }

  /** Whether a record of this age may pass at once, nothing being queued; changes nothing. */
  boolean mayPass(long ageMs, long nowNanos) {
    return bucket == null ? ageMs <= FRESH_MS : !cutShort && bucket.hasTokenAt(nowNanos);
  }

  /** A record passes at once. */
  void pass(long nowNanos) {
    siblings.reads++;
    passing = true;
    if (bucket != null) {
      bucket.refill(nowNanos);
    }
  }

  /** A record of this age was read; whether it is time to serve. */
  boolean read(long ageMs, long nowNanos) {
    if (passing) {
      beginGap(nowNanos); // what passed was a slice, and nobody looked at the time
      passing = false;
    }
    late = ageMs > lateMs;
    siblings.reads++;
    inputFlows();
    return readEnough(nowNanos);
  }

  /** A tick; whether it is time to serve. Input is idle if the thread has read nothing since. */
  boolean tick(long nowNanos) {
    boolean idle = siblings.reads == readsAtTick;
    readsAtTick = siblings.reads;
    if (!idle) {
      inputFlows();
      return readEnough(nowNanos);
    }
    sliceNanos = nextIdleSliceNanos;
    nextIdleSliceNanos = Math.min(2 * sliceNanos, idleSliceNanos);
    return true;
  }

  void beginSlice(long nowNanos) {
    sliceStartNanos = nowNanos;
    long nanos = sliceNanos;
    if (bucket != null) {
      bucket.refill(nowNanos);
    } else if (nanos == longSliceNanos) {
      long gapNanos = Math.min(gapNanos(nowNanos), longSliceNanos);
      nanos = Math.max(SHORT_SLICE_NANOS, gapNanos * SLICE_PER_GAP);
      nanos = Math.min(nanos, longSliceNanos);
    }
    deadlineNanos = nowNanos + nanos / Math.max(1, siblings.backlogged);
    cutShort = false;
  }

  /** Whether something may leave now, within the slice. */
  boolean mayServe(long nowNanos) {
    cutShort = nowNanos >= deadlineNanos;
    if (bucket == null) {
      return !cutShort;
    }
    bucket.refill(nowNanos);
    return bucket.hasToken() && !cutShort;
  }

  /** Something has left. */
  void served(long cost) {
    if (bucket != null) {
      bucket.take(cost);
    }
  }

  void endSlice(boolean emptied, long nowNanos) {
    siblings.slices++;
    siblings.slicedNanos += nowNanos - sliceStartNanos;
    beginGap(nowNanos);
    cutShort &= !emptied;
    setBacklogged(!emptied);
  }

  /** What may leave at once, in cost units; 0 without a rate. */
  double tokens() {
    return bucket == null ? 0 : bucket.tokens();
  }

  /** Must be called on the task's thread when the task ends. */
  void close() {
    setBacklogged(false);
  }

  private void inputFlows() {
    sliceNanos = longSliceNanos;
    nextIdleSliceNanos = longSliceNanos;
  }

  private boolean readEnough(long nowNanos) {
    if (bucket != null && !cutShort) {
      return true;
    }
    boolean wait = late || !isTurn();
    return gapNanos(nowNanos) >= (wait ? READ_LATE_NANOS : READ_NANOS);
  }

  /** Whether the others that have a backlog have had a slice since; one may come only to ticks. */
  private boolean isTurn() {
    int others = siblings.backlogged - (backlogged ? 1 : 0);
    return siblings.slices - slicesAtEnd >= others;
  }

  private void beginGap(long nowNanos) {
    sliceEndNanos = nowNanos;
    slicesAtEnd = siblings.slices;
    slicedNanosAtEnd = siblings.slicedNanos;
  }

  /** How long the thread has been reading: the slices of others are no gap. */
  private long gapNanos(long nowNanos) {
    return nowNanos - sliceEndNanos - (siblings.slicedNanos - slicedNanosAtEnd);
  }

  private void setBacklogged(boolean now) {
    if (now != backlogged) {
      backlogged = now;
      siblings.backlogged += now ? 1 : -1;
    }
  }
}
