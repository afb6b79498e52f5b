package io.streamshaper.aqm;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Faults that other people's schedulers had; the list is in cases.tsv. */
class SchedulingCasesTest {
  private static final long MS = MILLISECONDS.toNanos(1);

  private final Settings settings = new Settings();
  private final Map<String, Integer> dropped = new HashMap<>();
  private FqCodel<String, KeyedPacket> scheduler;

  /** Where buckets are an array, a negative hash code is an index out of it. */
  @Test
  void keysOfAnyHashCodeAreFlows() {
    List<String> keys = List.of("polygenelubricants", "zzzzzz", "", "a", "b");
    assertThat(keys.get(0).hashCode()).isEqualTo(Integer.MIN_VALUE);
    assertThat(keys.get(1).hashCode()).isNegative();
    start();
    for (int round = 0; round < 2; round++) {
      keys.forEach(key -> enqueue(key, 0));
    }
    List<String> forwarded = new ArrayList<>();
    keys.forEach(key -> forwarded.add(scheduler.dequeue(0, Long.MAX_VALUE).key));
    assertThat(forwarded).containsExactlyInAnyOrderElementsOf(keys);
  }

  @Test
  void aCountThatCannotGrowStillMovesTheNextDrop() {
    Flow<String, KeyedPacket> flow = new Flow<>();
    for (int i = 0; i < 100; i++) {
      flow.offer(KeyedPacket.of("k", i, 0));
    }
    Codel codel = settings.codel();
    long now = settings.targetNanos;
    codel.dequeue(flow, now, now, (packet, reason) -> true);
    now += settings.intervalNanos;
    codel.dequeue(flow, now, now, (packet, reason) -> true);
    flow.count = Long.MAX_VALUE;
    for (int i = 0; i < 5; i++) {
      now = flow.dropNextNanos;
      codel.dequeue(flow, now, now, (packet, reason) -> true);
      assertThat(flow.dropNextNanos).isGreaterThan(now);
    }
  }

  /** Credit by the billion must not be handed out one by one, nor be lost to an overflow. */
  @ParameterizedTest
  @CsvSource({"1, 1", "1, 2147483647", "2147483647, 1", "2147483647, 2147483647"})
  void aLegalQuantumNeverSpinsTheScheduler(long quantum, int weight) {
    int flows = 100;
    settings.quantum = quantum;
    settings.weight = key -> weight;
    start();
    for (int i = 0; i < 10 * flows; i++) {
      scheduler.enqueue(
          "k" + i % flows, new KeyedPacket("k", i, 0, quantum, 1, false, Packet.NEVER));
    }
    for (int i = 0; i < 10 * flows; i++) {
      long before = scheduler.steps();
      assertThat(scheduler.dequeue(0, Long.MAX_VALUE)).isNotNull();
      assertThat(scheduler.steps() - before).isLessThanOrEqualTo(2L * flows + 16);
    }
  }

  /** Ten times what can be taken from one key, and a hundred that send once a second. */
  @Test
  void aHundredQuietKeysBesideAFloodLoseNothingAndWaitNoLongerThanTwoRounds() {
    int quiet = 100;
    int seconds = 60;
    settings.mtu = 1;
    settings.ceilingNanos = 2 * settings.targetNanos;
    settings.limit = 100_000;
    start();
    long id = 0;
    int hotForwarded = 0;
    List<Long> sojourns = new ArrayList<>();
    for (long ms = 0; ms < seconds * 1000L; ms++) {
      long now = ms * MS;
      for (int i = 0; i < 10; i++) {
        scheduler.enqueue("hot", KeyedPacket.of("hot", id++, now));
      }
      if (ms % 10 == 0) {
        String key = "quiet" + ms / 10 % quiet;
        scheduler.enqueue(key, KeyedPacket.of(key, id++, now));
      }
      KeyedPacket packet = scheduler.dequeue(now, Long.MAX_VALUE);
      assertThat(packet).as("work at %d ms", ms).isNotNull();
      if (packet.key.equals("hot")) {
        hotForwarded++;
      } else {
        sojourns.add(packet.sojournNanos(now));
      }
    }
    assertThat(dropped.keySet()).containsExactly("hot");
    assertThat(sojourns)
        .hasSizeGreaterThanOrEqualTo(quiet * seconds - 2)
        .allSatisfy(sojourn -> assertThat(sojourn).isLessThanOrEqualTo(2 * MS));
    assertThat(hotForwarded).isEqualTo(seconds * 1000 - sojourns.size());
  }

  @Test
  void aQuietKeyIsNewAgainHoweverLongItWasAwayAndHoweverDeepTheBacklogIs() {
    int flows = 1000;
    settings.intervalNanos = SECONDS.toNanos(100_000);
    start();
    for (int i = 0; i < 1_000_000; i++) {
      enqueue("hot" + i % flows, 0);
    }
    for (int i = 0; i < 2 * flows; i++) {
      next(0); // until they are new no more
    }
    for (int visit = 1; visit <= 50; visit++) {
      for (int i = 0; i < flows + 5; i++) { // its turn on the old list passes
        assertThat(next(visit)).startsWith("hot");
      }
      enqueue("quiet", 0);
      assertThat(List.of(next(visit), next(visit))).as("visit %d", visit).contains("quiet");
    }
  }

  /** More new keys than can be served, so the turn of those that were served never comes. */
  @Test
  void aMillionKeysThatCameOnceAreForgotten() {
    settings.limit = 1000;
    start();
    for (int i = 0; i < 1_000_000; i++) {
      enqueue("key" + i, 0);
      if (i % 2 == 0) {
        scheduler.dequeue(i * MS / 100, Long.MAX_VALUE);
      }
      assertThat(knownFlows()).isLessThanOrEqualTo(1000 + FqCodel.MOST_EMPTY_FLOWS + 2);
    }
    while (scheduler.newFlows() + scheduler.oldFlows() > 0) {
      scheduler.dequeue(SECONDS.toNanos(1_000_000), Long.MAX_VALUE);
    }
    assertThat(knownFlows()).isZero();
    assertThat(scheduler.flow("key999999")).isNull();
  }

  /** Nor that of those that still had something queued until a limit took it. */
  @Test
  void aKeyThatALimitEmptiedWhileItsTurnNeverCameIsForgotten() {
    settings.limit = 4;
    settings.dropBatch = 1;
    start();
    enqueue("left", 0);
    for (int i = 0; i < 60_000; i++) {
      enqueue("x" + i, 0);
      enqueue("x" + i, 0);
      dequeue(2); // what was left, and the first of x
      enqueue("y" + i, 0);
      dequeue(1); // y, since x is old now
      for (int j = 0; j < 4; j++) {
        enqueue("z" + j + i, 0);
      }
      assertThat(dropped).containsOnlyKeys("x" + i);
      dropped.clear();
      dequeue(3);
      assertThat(knownFlows()).isLessThanOrEqualTo(FqCodel.MOST_EMPTY_FLOWS + 12);
    }
  }

  private void dequeue(int packets) {
    for (int i = 0; i < packets; i++) {
      assertThat(scheduler.dequeue(0, Long.MAX_VALUE)).isNotNull();
    }
  }

  private int knownFlows() {
    return scheduler.newFlows() + scheduler.oldFlows() + scheduler.idleFlows();
  }

  private void start() {
    scheduler = settings.scheduler((packet, reason) -> dropped.merge(packet.key, 1, Integer::sum));
  }

  private void enqueue(String key, long timestampNanos) {
    scheduler.enqueue(key, KeyedPacket.of(key, 0, timestampNanos));
  }

  private String next(int now) {
    return scheduler.dequeue(now, Long.MAX_VALUE).key;
  }
}
