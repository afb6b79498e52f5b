package io.streamshaper.examples;

import io.streamshaper.aqm.Codel;
import io.streamshaper.aqm.FqCodel;
import io.streamshaper.aqm.Packet;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;

/**
 * What the project began with, in virtual time: a device takes 64 packets every 14 ms, a flood
 * keeps it busy, and a ping comes every 200 ms. How many pings does CoDel drop?
 */
final class FoundingExperiment {
  static final int PINGS = 10_000;

  private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long TARGET = 5 * MS;
  private static final long INTERVAL = 100 * MS;
  private static final long PING_EVERY = 200 * MS;
  private static final long BATCH_EVERY = 14 * MS;
  private static final int BATCH = 64;
  private static final int FLOOD_LIMIT = 1024;
  private static final long SEED = 1;

  private FoundingExperiment() {}

  /**
   * Pings lost by CoDel as Linux had it: a packet above the target starts the alarm, being alone
   * does not help while the other flow has a backlog, and an empty queue does not stop the alarm,
   * so the next ping that waits too long, long after, is dropped for it. The rule is modelled here:
   * the library cannot be made to do this.
   */
  static int lostBefore() {
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(SEED);
    int lost = 0;
    boolean armed = false;
    for (int ping = 0; ping < PINGS; ping++) {
      long sojourn = random.nextLong(BATCH_EVERY);
      boolean late = sojourn >= TARGET;
      boolean dropped = late && armed;
      armed = late && !dropped;
      lost += dropped ? 1 : 0;
    }
    return lost;
  }

  /** Pings lost by the library, under the same load. */
  static int lostAfter() {
    RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(SEED);
    int[] lost = {0};
    FqCodel<String, Packet> scheduler =
        new FqCodel<>(
            new Codel(TARGET, INTERVAL, 1, 2 * TARGET, false, -1),
            1,
            FLOOD_LIMIT,
            0,
            BATCH,
            Object::hashCode,
            key -> 1,
            (packet, reason) -> lost[0] += packet.bytes() == 0 ? 1 : 0);
    int sent = 0;
    long nextPing = 0;
    for (long now = 0; sent < PINGS; now += BATCH_EVERY) {
      for (int i = 0; i < 2 * BATCH; i++) {
        scheduler.enqueue("flood", packet(now, 1));
      }
      for (; nextPing <= now && sent < PINGS; sent++) {
        scheduler.enqueue("ping", packet(now - random.nextLong(BATCH_EVERY), 0));
        nextPing += PING_EVERY;
      }
      for (int i = 0; i < BATCH; i++) {
        scheduler.dequeue(now, Long.MAX_VALUE);
      }
    }
    return lost[0];
  }

  /** Pings are told from the flood by their size. */
  private static Packet packet(long timestampNanos, long bytes) {
    return new Packet(timestampNanos, 1, bytes, false, Packet.NEVER);
  }
}
