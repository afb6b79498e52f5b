package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A scheduler whose structure is checked after every operation, beside the simplest model of what
 * it holds: a packet that leaves must be the head of its key's queue.
 */
final class CheckedFqCodel {
  /**
   * A packet that has left.
   *
   * @param reason null if it was forwarded
   * @param backlogLeft what it left behind in its own flow
   * @param operation during which it left
   */
  record Departure(
      KeyedPacket packet, DropReason reason, long nowNanos, long backlogLeft, int operation) {
    boolean forwarded() {
      return reason == null;
    }

    boolean droppedByCodel() {
      return reason == DropReason.CODEL || reason == DropReason.CEILING;
    }

    long sojournNanos() {
      return packet.sojournNanos(nowNanos);
    }

    @Override
    public String toString() {
      return "%s %s at %d".formatted(packet, reason == null ? "FORWARDED" : reason, nowNanos);
    }
  }

  final FqCodel<String, KeyedPacket> scheduler;
  final List<Departure> departures = new ArrayList<>();
  final Map<String, Deque<KeyedPacket>> queued = new HashMap<>();
  long enqueued;

  /** What a drop callback does after the drop was noted, such as throw. */
  Runnable afterDrop = () -> {};

  private final Integrity integrity;
  private long clockNanos;
  private long nowNanos = Long.MIN_VALUE;
  private int operation;

  CheckedFqCodel(Settings settings, long startNanos) {
    scheduler =
        settings.scheduler(
            (packet, reason) -> {
              leave(packet, reason);
              afterDrop.run();
            });
    integrity = new Integrity(scheduler, settings.intervalNanos);
    clockNanos = startNanos;
  }

  /** Enqueues a packet of this age; what the age wraps around to is a timestamp as well. */
  KeyedPacket enqueue(Arrival arrival) {
    long expiresNanos =
        arrival.lifeNanos() == Packet.NEVER ? Packet.NEVER : clockNanos + arrival.lifeNanos();
    KeyedPacket packet =
        new KeyedPacket(
            arrival.key(),
            enqueued++,
            clockNanos - arrival.ageNanos(),
            arrival.cost(),
            arrival.bytes(),
            arrival.markable(),
            expiresNanos);
    queued.computeIfAbsent(packet.key, key -> new ArrayDeque<>()).addLast(packet);
    checked(() -> scheduler.enqueue(packet.key, packet));
    return packet;
  }

  /** Lets time pass, backwards if it is negative, and dequeues. */
  KeyedPacket dequeue(long elapsedNanos, long budget) {
    clockNanos += elapsedNanos;
    nowNanos = Math.max(nowNanos, clockNanos);
    KeyedPacket[] packet = new KeyedPacket[1];
    checked(
        () -> {
          packet[0] = scheduler.dequeue(clockNanos, budget);
          if (packet[0] != null) {
            leave(packet[0], null);
          }
        });
    return packet[0];
  }

  /** Dequeues, with this budget a call, until a packet is forwarded or no flow is left to visit. */
  KeyedPacket dequeuePatiently(long elapsedNanos, long budget) {
    KeyedPacket packet = dequeue(elapsedNanos, budget);
    while (packet == null && scheduler.newFlows() + scheduler.oldFlows() > 0) {
      packet = dequeue(0, budget);
    }
    return packet;
  }

  List<Departure> departuresOf(int operation) {
    return departures.stream().filter(departure -> departure.operation == operation).toList();
  }

  int lastOperation() {
    return operation;
  }

  private void checked(Runnable action) {
    operation++;
    try {
      action.run();
    } finally {
      integrity.check();
      assertThat(scheduler.packets())
          .as("packets neither forwarded nor dropped")
          .isEqualTo(queued.values().stream().mapToLong(Deque::size).sum());
    }
  }

  private void leave(KeyedPacket packet, DropReason reason) {
    Deque<KeyedPacket> queue = queued.get(packet.key);
    assertThat(queue.peekFirst()).as("head of the flow of %s", packet).isSameAs(packet);
    queue.removeFirst();
    long backlogLeft = queue.stream().mapToLong(Packet::cost).sum();
    departures.add(new Departure(packet, reason, nowNanos, backlogLeft, operation));
  }
}
