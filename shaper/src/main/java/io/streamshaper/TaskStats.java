package io.streamshaper;

import io.streamshaper.aqm.DropReason;
import io.streamshaper.aqm.FqCodel;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/**
 * What a task has done and what it holds. Written by the task's thread, which never waits; read
 * from any thread. The law: received + restored = forwarded + dropped + unreadable + queued,
 * whenever nothing moves.
 */
final class TaskStats {
  private final AtomicLong received = new AtomicLong();
  private final AtomicLong restored = new AtomicLong();
  private final AtomicLong forwarded = new AtomicLong();
  private final Map<DropReason, AtomicLong> dropped = new EnumMap<>(DropReason.class);
  private final AtomicLong unreadable = new AtomicLong();
  private final AtomicLong marked = new AtomicLong();
  private final AtomicLong implausible = new AtomicLong();
  private final AtomicLong clockSteps = new AtomicLong();
  private final LongConsumer sojournNanos;

  private volatile Held held = new Held(0, 0, 0, 0, 0, 0, 0, 0);

  /** What the task held when it last published. */
  record Held(
      long records,
      long bytes,
      int newFlows,
      int oldFlows,
      int idleFlows,
      int droppingFlows,
      long largestBacklog,
      double tokens) {}

  /**
   * @param sojournNanos is given the sojourn of each record that is forwarded
   */
  TaskStats(LongConsumer sojournNanos) {
    this.sojournNanos = sojournNanos;
    for (DropReason reason : DropReason.values()) {
      dropped.put(reason, new AtomicLong());
    }
  }

  void countReceived() {
    increment(received);
  }

  void countRestored() {
    increment(restored);
  }

  void countForwarded(long nanos) {
    increment(forwarded);
    sojournNanos.accept(nanos);
  }

  void countDropped(DropReason reason) {
    increment(dropped.get(reason));
  }

  /** It was to leave, and could not be read. */
  void countUnreadable() {
    increment(unreadable);
  }

  void countMarked() {
    increment(marked);
  }

  void countImplausible() {
    increment(implausible);
  }

  void countClockStep() {
    increment(clockSteps);
  }

  void publish(FqCodel<?, ?> scheduler, double tokens) {
    held =
        new Held(
            scheduler.packets(),
            scheduler.bytes(),
            scheduler.newFlows(),
            scheduler.oldFlows(),
            scheduler.idleFlows(),
            scheduler.droppingFlows(),
            scheduler.largestBacklog(),
            tokens);
  }

  long received() {
    return received.get();
  }

  long restored() {
    return restored.get();
  }

  long forwarded() {
    return forwarded.get();
  }

  long dropped(DropReason reason) {
    return dropped.get(reason).get();
  }

  long unreadable() {
    return unreadable.get();
  }

  long marked() {
    return marked.get();
  }

  long implausible() {
    return implausible.get();
  }

  long clockSteps() {
    return clockSteps.get();
  }

  Held held() {
    return held;
  }

  /** There is one writer. */
  private static void increment(AtomicLong counter) {
    counter.lazySet(counter.getPlain() + 1);
  }
}
