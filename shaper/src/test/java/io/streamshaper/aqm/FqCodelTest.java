package io.streamshaper.aqm;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FqCodelTest {
  private final Settings settings = new Settings();
  private final List<String> drops = new ArrayList<>();
  private final Map<String, Long> nextIds = new HashMap<>();
  private FqCodel<String, KeyedPacket> scheduler;

  @Test
  void keysTakeTurns() {
    enqueue("a", 5);
    enqueue("b", 5);
    assertThat(forward(4)).containsExactly("a0", "b0", "a1", "b1");
  }

  @Test
  void aSparseKeyOvertakesABulkKey() {
    enqueue("bulk", 1000);
    forward(10);
    enqueue("sparse", 1);
    assertThat(forward(2)).contains("sparse0");
  }

  @Test
  void aNewFlowIsServedBeforeAnyOldOne() {
    enqueue("a", 3);
    enqueue("b", 3);
    forward(2);
    assertThat(scheduler.oldFlows()).isEqualTo(1);
    enqueue("c", 1);
    assertThat(forward(3)).containsExactly("c0", "a1", "b1");
  }

  @Test
  void theQuantumIsSpentInCost() {
    settings.quantum = 10;
    enqueue("big", 3, 10);
    enqueue("small", 30, 1);
    assertThat(forward(12)).startsWith("big0", "small0").endsWith("small9", "big1");
  }

  @Test
  void aCostAboveTheQuantumIsPaidOffRoundByRound() {
    enqueue("dear", 2, 3);
    enqueue("cheap", 9, 1);
    // The deficit is 1 - 3 = -2: three quanta until it is above 0 again.
    assertThat(forward(5)).containsExactly("dear0", "cheap0", "cheap1", "cheap2", "dear1");
  }

  @Test
  void weightsThreeToOneGiveSixOfEight() {
    settings.weight = key -> key.equals("heavy") ? 3 : 1;
    enqueue("heavy", 20);
    enqueue("light", 20);
    assertThat(forward(8)).filteredOn(packet -> packet.startsWith("heavy")).hasSize(6);
  }

  @Test
  void aWeightIsAskedOnceForEachFlow() {
    List<String> asked = new ArrayList<>();
    settings.weight =
        key -> {
          asked.add(key);
          return 1;
        };
    enqueue("a", 3);
    enqueue("b", 1);
    forward(2);
    assertThat(asked).containsExactly("a", "b");
  }

  @Test
  void theFattestFlowsAreListedByBacklogPerWeight() {
    settings.weight = key -> key.equals("heavy") ? 10 : 1;
    for (int i = 0; i < 20; i++) {
      enqueue("flow" + i, 1 + i * 7 % 20);
    }
    enqueue("heavy", 150);

    assertThat(scheduler.fattest(7))
        .extracting(FlowState::packets)
        .containsExactly(20L, 19L, 18L, 17L, 16L, 15L, 150L);
    assertThat(scheduler.fattest(100)).hasSize(21);
    assertThat(scheduler.fattest(0)).isEmpty();
    assertThat(scheduler.flow("heavy").packets()).isEqualTo(150);
    assertThat(scheduler.flow("unknown")).isNull();
  }

  /** In 64 bits the products are -2 and 4. */
  @ParameterizedTest
  @CsvSource({"0x7fffffffffffffff, 2", "0x4000000000000001, 4"})
  void aQuantumTimesAWeightDoesNotWrap(long quantum, int weight) {
    settings.quantum = quantum;
    settings.weight = key -> weight;
    enqueue("a", 5);
    enqueue("b", 1);
    assertThat(forward(6)).containsExactly("a0", "a1", "a2", "a3", "a4", "b0");
  }

  /**
   * At once, or after one more service, when an emptied flow that took no detour would be unlisted,
   * hence new again: it would get every other turn.
   */
  @ParameterizedTest
  @CsvSource({"1, 0", "1, 1", "2, 0", "2, 1"})
  void aKeyThatComesBackRightAfterEachServiceGainsNothing(int quantum, int pause) {
    int keys = 21;
    int total = keys * 100;
    settings.quantum = quantum;
    for (int i = 1; i < keys; i++) {
      enqueue("bulk" + i, total / 10);
    }
    enqueue("attacker", 1);
    int services = 0;
    int lastService = -1;
    for (int i = 0; i < total; i++) {
      if (forward(1).get(0).startsWith("attacker")) {
        services++;
        lastService = i;
      }
      if (i == lastService + pause) {
        enqueue("attacker", 1);
      }
    }
    assertThat(services).isBetween(keys, total / keys + quantum);
  }

  @Test
  void anEmptyOldFlowIsPassedOver() {
    enqueue("a", 1);
    enqueue("b", 4);
    forward(2);
    assertThat(scheduler.oldFlows()).isEqualTo(1);
    // Now a is old and empty, and b goes behind it.
    assertThat(forward(1)).containsExactly("b1");
    assertThat(forward(2)).containsExactly("b2", "b3");
  }

  @Test
  void anEmptiedFlowKeepsItsDeficitWhileItIsListed() {
    settings.quantum = 2;
    enqueue("a", 1, 5);
    enqueue("b", 9, 1);
    assertThat(forward(1)).containsExactly("a0");
    enqueue("a", 1, 5);
    // -3, -1, then 1: a is in debt for two more rounds, of two packets each.
    assertThat(forward(5)).containsExactly("b0", "b1", "b2", "b3", "a1");
  }

  @Test
  void dropsCostNoDeficit() {
    enqueue("a", 3, 1, 10);
    enqueue("a", 2);
    enqueue("b", 2);
    assertThat(scheduler.dequeue(11, Long.MAX_VALUE)).hasToString("a3");
    assertThat(drops).containsExactly("a0 EXPIRED", "a1 EXPIRED", "a2 EXPIRED");
    assertThat(forward(3)).containsExactly("b0", "a4", "b1");
  }

  @Test
  void theFattestFlowLosesFromItsHead() {
    settings.limit = 903;
    enqueue("hot", 900);
    enqueue("sparse", 4);
    assertThat(drops).hasSize(64).startsWith("hot0 OVERLIMIT").endsWith("hot63 OVERLIMIT");
    assertThat(scheduler.packets()).isEqualTo(904 - 64);
    assertThat(scheduler.largestBacklog()).isEqualTo(900 - 64);
  }

  @Test
  void anOverlimitDropStopsAtHalfOfTheBacklog() {
    settings.limit = 10;
    enqueue("hot", 9);
    enqueue("sparse", 2);
    assertThat(drops).hasSize(4);
    assertThat(scheduler.packets()).isEqualTo(7);
  }

  @Test
  void fatIsABacklogOfCostNotOfPackets() {
    settings.limit = 4;
    settings.dropBatch = 1;
    enqueue("many", 3, 1);
    enqueue("dear", 2, 2);
    assertThat(drops).containsExactly("dear0 OVERLIMIT");
  }

  @ParameterizedTest
  @CsvSource({"5, 2, light", "6, 2, heavy", "7, 2, heavy"})
  void fatIsABacklogPerWeightAndAmongEqualsTheLongestListed(
      int heavyPackets, int lightPackets, String victim) {
    settings.weight = key -> key.equals("heavy") ? 3 : 1;
    settings.limit = heavyPackets + lightPackets - 1L;
    settings.dropBatch = 1;
    enqueue("heavy", heavyPackets);
    enqueue("light", lightPackets);
    assertThat(drops).containsExactly(victim + "0 OVERLIMIT");
  }

  @Test
  void fatnessIsComparedExactlyHoweverLargeItIs() {
    settings.weight = key -> key.equals("heavy") ? Integer.MAX_VALUE : 1;
    settings.limit = 1;
    // For its weight the light one is 1,024 times as fat, and in 64 bits that product is negative.
    enqueue("heavy", 1, 1L << 61);
    enqueue("light", 1, 1L << 40);
    assertThat(drops).containsExactly("light0 OVERLIMIT");
  }

  @Test
  void aFlowThatLeftAndCameBackIsNotTheLongestListed() {
    settings.limit = 3;
    settings.dropBatch = 1;
    enqueue("a", 1);
    forward(2);
    assertThat(scheduler.newFlows() + scheduler.oldFlows()).isZero();
    enqueue("b", 2);
    enqueue("a", 2);
    assertThat(drops).containsExactly("b0 OVERLIMIT");
  }

  @Test
  void theArrivingPacketItselfCanBeDropped() {
    settings.limitBytes = 1;
    enqueue("a", 2);
    assertThat(drops).containsExactly("a0 OVERLIMIT");
    scheduler.enqueue("b", new KeyedPacket("b", 0, 0, 9, 9, false, Packet.NEVER));
    assertThat(drops).containsExactly("a0 OVERLIMIT", "b0 OVERLIMIT");
    assertThat(scheduler.bytes()).isEqualTo(1);
  }

  @Test
  void bytesAreLimitedOnlyIfToldSo() {
    settings.limitBytes = 0;
    enqueue("a", 100);
    assertThat(drops).isEmpty();
    assertThat(scheduler.bytes()).isEqualTo(100);
  }

  @Test
  void whatIsAppendedIsSparedUntilTheLimitsAreEnforced() {
    settings.limit = 2;
    scheduler = scheduler();
    for (long id = 0; id < 5; id++) {
      scheduler.append("a", KeyedPacket.of("a", id, 0));
    }
    assertThat(drops).isEmpty();
    assertThat(scheduler.packets()).isEqualTo(5);
    assertThat(scheduler.enforceLimits()).as("three are still one too many").isTrue();
    assertThat(drops).containsExactly("a0 OVERLIMIT", "a1 OVERLIMIT");
    assertThat(scheduler.enforceLimits()).as("two may stay").isFalse();
    assertThat(scheduler.enforceLimits()).isFalse();
    assertThat(drops).hasSize(3);
  }

  @Test
  void onOneTimeLineAClockThatStepsBackIsClamped() {
    enqueue("a", 1, 1, 50);
    enqueue("b", 1, 1, 50);
    assertThat(scheduler.dequeue(50, Long.MAX_VALUE)).hasToString("a0");
    scheduler.dequeue(51, 1);
    assertThat(scheduler.dequeue(0, Long.MAX_VALUE)).isNull();
    assertThat(drops).containsExactly("b0 EXPIRED");
  }

  @Test
  void agesFollowAClockThatIsCorrected() {
    enqueue("a", 1, 1, 50);
    enqueue("b", 1, 1, 50);
    assertThat(scheduler.dequeue(51, 7, 1)).isNull();
    assertThat(scheduler.dequeue(50, 8, Long.MAX_VALUE)).hasToString("b0");
    assertThat(drops).containsExactly("a0 EXPIRED");
  }

  @Test
  void theClockForDurationsIsClamped() {
    long target = settings.targetNanos;
    long interval = settings.intervalNanos;
    scheduler = scheduler();
    scheduler.dequeue(0, 1000, Long.MAX_VALUE);
    enqueue("a", 5);
    assertThat(scheduler.dequeue(target, 0, Long.MAX_VALUE)).hasToString("a0");
    assertThat(scheduler.dequeue(target, 999 + interval, Long.MAX_VALUE)).hasToString("a1");
    assertThat(scheduler.dequeue(target, 1000 + interval, Long.MAX_VALUE)).hasToString("a3");
    assertThat(drops).containsExactly("a2 CODEL");
  }

  @Test
  void aFlowIsRememberedByTheClockForDurations() {
    long now = makeOneCodelDrop();
    long end = now + 17 * settings.intervalNanos;
    assertThat(scheduler.dequeue(now, Long.MAX_VALUE)).hasToString("a3");
    scheduler.dequeue(end, end - 1, Long.MAX_VALUE);
    assertThat(scheduler.idleFlows()).isEqualTo(1);
    scheduler.dequeue(0, end, Long.MAX_VALUE);
    assertThat(scheduler.idleFlows()).isZero();
  }

  @Test
  void aBudgetEndsTheCallNotTheWork() {
    enqueue("a", 10, 1, 50);
    enqueue("a", 1);
    assertThat(scheduler.dequeue(51, 4)).isNull();
    assertThat(drops).hasSize(4);
    assertThat(scheduler.isEmpty()).isFalse();
    assertThat(scheduler.dequeue(51, 4)).isNull();
    assertThat(scheduler.dequeue(51, 4)).hasToString("a10");
    assertThat(drops).hasSize(10);
  }

  @Test
  void aFlowIsRememberedForSixteenIntervalsAfterItsLastDrop() {
    long interval = settings.intervalNanos;
    long now = makeOneCodelDrop();
    assertThat(scheduler.dequeue(now, Long.MAX_VALUE)).hasToString("a3");
    assertThat(scheduler.dequeue(now, Long.MAX_VALUE)).isNull();
    assertThat(scheduler.idleFlows()).isEqualTo(1);
    scheduler.dequeue(now + 17 * interval - 1, Long.MAX_VALUE);
    assertThat(scheduler.idleFlows()).isEqualTo(1);
    scheduler.dequeue(now + 17 * interval, Long.MAX_VALUE);
    assertThat(scheduler.idleFlows()).isZero();
  }

  @Test
  void beforeAPacketLeavesTwoIdleFlowsAreForgotten() {
    long end = makeIdleFlows(5);
    enqueue("busy", 2);
    assertThat(scheduler.dequeue(end, Long.MAX_VALUE)).hasToString("busy0");
    assertThat(scheduler.idleFlows()).isEqualTo(3);
    assertThat(scheduler.flow("flow2")).isNull();
    assertThat(scheduler.flow("flow3")).isNotNull();
    assertThat(scheduler.dequeue(end, Long.MAX_VALUE)).hasToString("busy1");
    assertThat(scheduler.idleFlows()).isEqualTo(1);
  }

  @Test
  void theBudgetThatIsLeftWhenNoPacketLeavesGoesToIdleFlows() {
    long end = makeIdleFlows(7);
    assertThat(scheduler.dequeue(end, 1)).isNull();
    assertThat(scheduler.idleFlows()).as("two, as ever, and one for the budget").isEqualTo(4);
    assertThat(scheduler.dequeue(end, 2)).isNull();
    assertThat(scheduler.idleFlows()).isZero();
  }

  @Test
  void aFlowThatNeverDroppedIsForgottenAtOnce() {
    enqueue("a", 1);
    assertThat(forward(1)).containsExactly("a0");
    // One to join the old list and one to leave it: nothing of the budget is left for idle flows.
    assertThat(scheduler.dequeue(0, 2)).isNull();
    assertThat(scheduler.idleFlows() + scheduler.newFlows() + scheduler.oldFlows()).isZero();
  }

  @Test
  void droppingFlowsAreCountedWhileTheyDrop() {
    long now = makeOneCodelDrop();
    assertThat(scheduler.droppingFlows()).isEqualTo(1);
    scheduler.dequeue(now, Long.MAX_VALUE);
    assertThat(scheduler.droppingFlows()).isZero();
  }

  @Test
  void aNullKeyIsAKeyLikeAnyOther() {
    enqueue(null, 2);
    enqueue("", 2);
    assertThat(forward(4)).containsExactly("null0", "0", "null1", "1");
  }

  @Test
  void keysOfOneHashCodeDoNotShareAFlow() {
    assertThat("Aa".hashCode()).isEqualTo("BB".hashCode());
    enqueue("Aa", 3);
    enqueue("BB", 1);
    assertThat(forward(2)).containsExactly("Aa0", "BB0");
  }

  @Test
  void aPacketThatHasLeftCanBeQueuedAgain() {
    enqueue("a", 3);
    KeyedPacket packet = scheduler.dequeue(0, Long.MAX_VALUE);
    scheduler.enqueue("b", packet);
    assertThat(forward(9)).containsExactly("a0", "a1", "a2");
    assertThat(scheduler.isEmpty()).isTrue();
  }

  @Test
  void anEmptySchedulerHasNothingToForward() {
    scheduler = scheduler();
    assertThat(scheduler.dequeue(0, 1)).isNull();
    assertThat(scheduler.isEmpty()).isTrue();
    assertThat(scheduler.largestBacklog()).isZero();
  }

  @Test
  void aSchedulerIsIdleOnceItsLastEmptiedFlowHasLeft() {
    scheduler = scheduler();
    assertThat(scheduler.isIdle()).isTrue();
    enqueue("a", 1);
    assertThat(scheduler.isIdle()).as("a packet is queued").isFalse();
    forward(1);
    assertThat(scheduler.newFlows()).isEqualTo(1);
    assertThat(scheduler.isIdle()).as("a new flow is empty").isFalse();
    assertThat(scheduler.dequeue(0, 1)).isNull();
    assertThat(scheduler.newFlows()).isZero();
    assertThat(scheduler.oldFlows()).isEqualTo(1);
    assertThat(scheduler.isIdle()).as("an old flow is empty").isFalse();
    assertThat(scheduler.dequeue(0, 1)).isNull();
    assertThat(scheduler.isIdle()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "1, 1"})
  void asManyEmptyFlowsAsMayWaitDoSoAndOneMoreLeavesAheadOfItsTurn(int more, int leaving) {
    int flows = FqCodel.MOST_EMPTY_FLOWS + more;
    for (int i = 0; i < flows; i++) {
      enqueue("flow" + i, 1);
    }
    assertThat(forward(flows)).hasSize(flows);
    // All but the last served are old; that one has used up its quantum, and would join them.
    assertThat(scheduler.newFlows()).isEqualTo(1);
    assertThat(scheduler.oldFlows()).isEqualTo(flows - 1);
    assertThat(scheduler.dequeue(0, 1)).isNull();
    assertThat(scheduler.newFlows()).isZero();
    assertThat(scheduler.oldFlows()).isEqualTo(flows - leaving);
  }

  @Test
  void flowsThatLeaveAfterTheLastPacketMoveNothingInTheHeap() {
    for (String key : List.of("a", "b", "c", "d", "e", "f", "g")) {
      enqueue(key, 1);
    }
    forward(7);
    long before = scheduler.steps();
    assertThat(forward(1)).isEmpty();
    // g, which has used up its quantum, is looked at when it joins the old list and when it leaves.
    assertThat(scheduler.steps() - before).isEqualTo(6 + 2);
    assertThat(scheduler.newFlows() + scheduler.oldFlows()).isZero();
  }

  @Test
  void aFlowOfTheSameHashThatIsPassedOverIsAStep() {
    enqueue("Aa", 1);
    enqueue("BB", 1);
    assertThat(scheduler.steps()).as("past Aa, to find that there is no BB").isEqualTo(1);
    assertThat(scheduler.flow("Aa").packets()).isEqualTo(1);
    assertThat(scheduler.steps()).as("past BB, which is first in the chain").isEqualTo(2);
  }

  @Test
  void aWeightThatThrowsChangesNothing() {
    settings.weight =
        key -> {
          throw new IllegalStateException("No weight for " + key);
        };
    scheduler = scheduler();
    assertThatThrownBy(() -> scheduler.enqueue("a", KeyedPacket.of("a", 0, 0)))
        .hasMessage("No weight for a");
    assertThat(scheduler.isEmpty()).isTrue();
    assertThat(scheduler.newFlows()).isZero();
  }

  @Test
  void parametersOutOfRangeAreRefused() {
    Settings noQuantum = new Settings();
    noQuantum.quantum = 0;
    assertRefused(noQuantum, "quantum must be at least 1, was 0");
    Settings noLimit = new Settings();
    noLimit.limit = 0;
    assertRefused(noLimit, "limit must be at least 1, was 0");
    Settings negativeBytes = new Settings();
    negativeBytes.limitBytes = -1;
    assertRefused(negativeBytes, "limitBytes must be at least 0, was -1");
    Settings noBatch = new Settings();
    noBatch.dropBatch = 0;
    assertRefused(noBatch, "dropBatch must be at least 1, was 0");
  }

  private static void assertRefused(Settings settings, String message) {
    assertThatThrownBy(() -> settings.scheduler((packet, reason) -> {})).hasMessage(message);
  }

  /** Leaves flow a dropping, with one packet; the time of the drop. */
  private long makeOneCodelDrop() {
    long armed = MILLISECONDS.toNanos(5);
    long now = armed + settings.intervalNanos;
    settings.quantum = 10;
    enqueue("a", 4);
    scheduler.dequeue(armed, Long.MAX_VALUE);
    assertThat(scheduler.dequeue(now, Long.MAX_VALUE)).hasToString("a2");
    assertThat(drops).containsExactly("a1 CODEL");
    assertThat(scheduler.droppingFlows()).isEqualTo(1);
    return now;
  }

  /** Leaves flows with nothing queued and one drop each; the time from which all are forgotten. */
  private long makeIdleFlows(int flows) {
    long armed = settings.targetNanos;
    long now = armed + settings.intervalNanos;
    for (int i = 1; i <= flows; i++) {
      enqueue("flow" + i, 3);
    }
    for (int i = 1; i <= flows; i++) {
      assertThat(scheduler.dequeue(armed, Long.MAX_VALUE)).hasToString("flow" + i + "0");
    }
    for (int i = 1; i <= flows; i++) {
      assertThat(scheduler.dequeue(now, Long.MAX_VALUE)).hasToString("flow" + i + "2");
    }
    assertThat(drops).hasSize(flows).allMatch(drop -> drop.endsWith("1 CODEL"));
    assertThat(scheduler.dequeue(now, Long.MAX_VALUE)).isNull();
    assertThat(scheduler.idleFlows()).isEqualTo(flows);
    return now + 17 * settings.intervalNanos;
  }

  private FqCodel<String, KeyedPacket> scheduler() {
    return settings.scheduler((packet, reason) -> drops.add(packet + " " + reason));
  }

  private void enqueue(String key, int packets) {
    enqueue(key, packets, 1);
  }

  private void enqueue(String key, int packets, long cost) {
    enqueue(key, packets, cost, Packet.NEVER);
  }

  private void enqueue(String key, int packets, long cost, long expiresNanos) {
    if (scheduler == null) {
      scheduler = scheduler();
    }
    for (int i = 0; i < packets; i++) {
      long id = nextIds.merge(key, 1L, Long::sum) - 1;
      scheduler.enqueue(key, new KeyedPacket(key, id, 0, cost, 1, false, expiresNanos));
    }
  }

  /** At most this many packets, at time 0: nothing is late. */
  private List<String> forward(int packets) {
    List<String> forwarded = new ArrayList<>();
    for (int i = 0; i < packets; i++) {
      KeyedPacket packet = scheduler.dequeue(0, Long.MAX_VALUE);
      if (packet != null) {
        forwarded.add(packet.toString());
      }
    }
    return forwarded;
  }
}
