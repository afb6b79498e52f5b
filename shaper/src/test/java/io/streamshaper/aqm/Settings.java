package io.streamshaper.aqm;

import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.ToIntFunction;

/** The parameters of a scheduler under test: unless told otherwise, each packet costs a round. */
final class Settings {
  long targetNanos = TimeUnit.MILLISECONDS.toNanos(5);
  long intervalNanos = TimeUnit.MILLISECONDS.toNanos(100);
  long mtu;
  long ceilingNanos = -1;
  boolean marking;
  long markThresholdNanos = -1;
  long quantum = 1;
  long limit = Long.MAX_VALUE;
  long limitBytes;
  int dropBatch = 64;
  ToIntFunction<String> weight = key -> 1;

  Codel codel() {
    return new Codel(targetNanos, intervalNanos, mtu, ceilingNanos, marking, markThresholdNanos);
  }

  FqCodel<String, KeyedPacket> scheduler(BiConsumer<KeyedPacket, DropReason> onDrop) {
    return scheduler(codel(), onDrop);
  }

  FqCodel<String, KeyedPacket> scheduler(Codel codel, BiConsumer<KeyedPacket, DropReason> onDrop) {
    return new FqCodel<>(
        codel, quantum, limit, limitBytes, dropBatch, Objects::hashCode, weight, onDrop);
  }

  FqCodel<String, KeyedPacket> scheduler(
      FaultyCodel codel, BiConsumer<KeyedPacket, DropReason> onDrop) {
    FqCodel<String, KeyedPacket> scheduler = scheduler((Codel) codel, onDrop);
    codel.watch(scheduler);
    return scheduler;
  }

  @Override
  public String toString() {
    return "target %d, interval %d, mtu %d, ceiling %d, marking %b above %d, quantum %d, limits %d packets and %d bytes, batch %d"
        .formatted(
            targetNanos,
            intervalNanos,
            mtu,
            ceilingNanos,
            marking,
            markThresholdNanos,
            quantum,
            limit,
            limitBytes,
            dropBatch);
  }
}
