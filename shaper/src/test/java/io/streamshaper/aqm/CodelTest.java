package io.streamshaper.aqm;

import static java.util.concurrent.TimeUnit.HOURS;
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CodelTest {
  private static final long TARGET = MILLISECONDS.toNanos(5);
  private static final long INTERVAL = MILLISECONDS.toNanos(100);
  private static final long HOUR = HOURS.toNanos(1);

  private final Settings settings = new Settings();
  private final Flow<String, KeyedPacket> flow = new Flow<>();
  private final List<String> drops = new ArrayList<>();
  private long nextId;

  @Test
  void aDelayBelowTargetIsLeftAlone() {
    queue(10, 0);
    IntStream.range(0, 10).forEach(i -> assertForwarded("k" + i, TARGET - 1));
    assertThat(flow.armed).isFalse();
  }

  @Test
  void nothingIsDroppedUntilTheDelayHasStoodForAnInterval() {
    queue(10, 0);
    assertForwarded("k0", TARGET);
    assertForwarded("k1", TARGET + INTERVAL - 1);
    assertForwarded("k3", TARGET + INTERVAL, "k2 CODEL");
  }

  @Test
  void oneGoodPacketStartsTheIntervalAgain() {
    queue(2, 0);
    queue(1, TARGET + INTERVAL);
    queue(5, 0);
    assertForwarded("k0", TARGET);
    assertForwarded("k1", TARGET + INTERVAL - 1);
    assertForwarded("k2", TARGET + INTERVAL);
    assertForwarded("k3", TARGET + INTERVAL);
    assertForwarded("k4", TARGET + 2 * INTERVAL - 1);
    assertForwarded("k6", TARGET + 2 * INTERVAL, "k5 CODEL");
  }

  /** 100, 70.7, 57.7 and 50 ms: the interval over the square roots of 1, 2, 3 and 4. */
  @Test
  void theGapsBetweenDropsShrinkWithTheSquareRootOfTheirNumber() {
    queue(100, 0);
    assertForwarded("k0", TARGET);
    long drop = TARGET + INTERVAL;
    int next = 1;
    for (long gap : new long[] {100_000_000, 70_710_678, 57_735_026, 50_000_000}) {
      assertForwarded("k" + (next + 1), drop, "k" + next + " CODEL");
      assertForwarded("k" + (next + 2), drop + gap - 1);
      assertThat(flow.dropNextNanos).isEqualTo(drop + gap);
      drop += gap;
      next += 3;
    }
  }

  @Test
  void allDropsThatAreDueAreMadeAtOnce() {
    queue(100, 0);
    startDropping();
    long late = flow.dropNextNanos + 70_710_678 + 57_735_026;
    assertForwarded("k6", late, "k3 CODEL", "k4 CODEL", "k5 CODEL");
    assertThat(flow.dropNextNanos).isEqualTo(late + 50_000_000);
  }

  @Test
  void theNextDropIsAlwaysLater() {
    queue(9, 0);
    startDropping();
    flow.count = Long.MAX_VALUE - 1;
    long due = flow.dropNextNanos;
    assertForwarded("k4", due, "k3 CODEL");
    assertThat(flow.dropNextNanos).isEqualTo(due + 1);
  }

  @Test
  void droppingEndsWithTheFirstGoodPacket() {
    queue(3, 0);
    queue(5, TARGET + INTERVAL);
    startDropping();
    assertForwarded("k3", TARGET + INTERVAL + 1);
    assertThat(flow.dropping).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "15.9, 10, 4, 6",
    "16.0, 10, 4, 1",
    "16.1, 10, 4, 1",
    "15.9, 5, 4, 1",
    "15.9, 4, 4, 1"
  })
  void aFlowThatDropsAgainSoonResumesWhereItWas(
      double intervals, long count, long lastCount, long resumed) {
    queue(3, Long.MIN_VALUE);
    flow.count = count;
    flow.lastCount = lastCount;
    flow.hasDropNext = true;
    flow.armed = true;
    assertForwarded("k1", (long) (intervals * INTERVAL), "k0 CODEL");
    assertThat(flow.count).isEqualTo(resumed);
    assertThat(flow.lastCount).isEqualTo(resumed);
  }

  @Test
  void whatAFlowRemembersMayBeForgottenAfterSixteenIntervals() {
    Codel codel = settings.codel();
    assertThat(codel.mayForget(flow, 0)).isTrue();
    flow.hasDropNext = true;
    assertThat(codel.mayForget(flow, 16 * INTERVAL - 1)).isFalse();
    assertThat(codel.mayForget(flow, 16 * INTERVAL)).isTrue();
  }

  @Test
  void theMemoryOfAHugeIntervalDoesNotWrap() {
    settings.intervalNanos = Long.MAX_VALUE / 4;
    flow.hasDropNext = true;
    assertThat(settings.codel().mayForget(flow, Long.MAX_VALUE - 1)).isFalse();
  }

  @Test
  void aFlowThatIsFoundEmptyForgetsThatItWasAboveTarget() {
    settings.mtu = 0;
    queue(2, 0);
    assertForwarded("k0", TARGET);
    assertThat(flow.armed).isTrue();
    // As an overlimit drop empties a flow: CoDel sees only that nothing is left.
    flow.poll();
    assertForwarded(null, TARGET + INTERVAL);
    queue(2, 0);
    assertForwarded("k2", TARGET + INTERVAL);
  }

  @Test
  void aLonePacketIsNeverDroppedHoweverLate() {
    settings.ceilingNanos = TARGET;
    queue(4, 0);
    assertForwarded("k0", TARGET);
    assertForwarded("k3", TARGET + INTERVAL, "k1 CODEL", "k2 CEILING");
    queue(1, 0);
    assertForwarded("k4", 1000 * INTERVAL);
    assertThat(flow.armed).isFalse();
  }

  @Test
  void theToleratedBacklogIsWhatAPacketLeavesBehind() {
    settings.mtu = 2;
    queue(5, 0);
    assertForwarded("k0", TARGET);
    assertForwarded("k2", TARGET + INTERVAL, "k1 CODEL");
    assertForwarded("k3", 10 * INTERVAL);
    assertForwarded("k4", 20 * INTERVAL);
  }

  @Test
  void theCeilingCutsWhatIsOlderWhileDropping() {
    settings.ceilingNanos = 2 * TARGET;
    queue(3, 0);
    long now = TARGET + INTERVAL;
    queue(1, now - 2 * TARGET - 1);
    queue(1, now - 2 * TARGET);
    queue(1, 0);
    assertForwarded("k0", TARGET);
    assertForwarded("k4", now, "k1 CODEL", "k2 CEILING", "k3 CEILING");
    assertThat(flow.count).isEqualTo(1);
    assertThat(flow.dropNextNanos).isEqualTo(now + INTERVAL);
  }

  @Test
  void theCeilingIsNoLimitUnlessTheFlowIsDropping() {
    settings.ceilingNanos = TARGET;
    queue(5, 0);
    assertForwarded("k0", 1000 * INTERVAL);
    assertForwarded("k1", 1001 * INTERVAL - 1);
  }

  @Test
  void anExpiredPacketIsDroppedWhateverTheState() {
    queue(1, 0, 9);
    queue(1, 0, 10);
    assertForwarded("k1", 10, "k0 EXPIRED");
    assertThat(flow.armed).isFalse();

    queue(3, 0);
    queue(1, 0, 50);
    queue(2, 0);
    assertForwarded("k2", TARGET);
    assertForwarded("k4", TARGET + INTERVAL, "k3 CODEL");
    assertForwarded("k6", TARGET + INTERVAL, "k5 EXPIRED");
    assertForwarded("k7", TARGET + INTERVAL);
    assertThat(flow.count).isEqualTo(1);
  }

  @Test
  void aMarkablePacketIsMarkedInsteadOfDropped() {
    settings.marking = true;
    queueMarkable(6);
    assertMarked("k0", TARGET, 0);
    assertMarked("k1", TARGET + INTERVAL, Packet.CODEL_MARK);
    assertMarked("k2", TARGET + 2 * INTERVAL - 1, 0);
    assertMarked("k3", TARGET + 2 * INTERVAL, Packet.CODEL_MARK);
    assertThat(flow.dropNextNanos).isEqualTo(TARGET + 2 * INTERVAL + 70_710_678);
  }

  @Test
  void theCeilingMarksAsWell() {
    settings.marking = true;
    settings.ceilingNanos = TARGET;
    queueMarkable(4);
    assertMarked("k0", TARGET, 0);
    assertMarked("k1", TARGET + INTERVAL, Packet.CODEL_MARK);
    assertMarked("k2", TARGET + INTERVAL, Packet.CODEL_MARK);
  }

  @Test
  void aPacketThatIsNotMarkableIsDroppedEvenWhenMarking() {
    settings.marking = true;
    queue(4, 0);
    assertForwarded("k0", TARGET);
    assertForwarded("k2", TARGET + INTERVAL, "k1 CODEL");
  }

  @Test
  void theThresholdMarksWhateverTheState() {
    settings.markThresholdNanos = 3;
    queueMarkable(2);
    queue(1, 0);
    assertMarked("k0", 3, 0);
    assertMarked("k1", 4, Packet.THRESHOLD_MARK);
    assertMarked("k2", 5, 0);
  }

  @Test
  void bothMarksCanMeet() {
    settings.marking = true;
    settings.markThresholdNanos = 0;
    queueMarkable(3);
    assertMarked("k0", TARGET, Packet.THRESHOLD_MARK);
    assertMarked("k1", TARGET + INTERVAL, Packet.CODEL_MARK | Packet.THRESHOLD_MARK);
  }

  @Test
  void aDropThatIsNotFollowedByAnotherTakesTheFlowsTurn() {
    queue(9, 0);
    startDropping();
    KeyedPacket packet =
        settings
            .codel()
            .dequeue(flow, flow.dropNextNanos, flow.dropNextNanos, (dropped, reason) -> false);
    assertThat(packet).isNull();
    assertThat(flow.backlog).isEqualTo(5);
  }

  /** The clock shows 5 ms throughout; the control law's begins elsewhere and goes on. */
  @Test
  void theControlLawGoesByTheClockForDurations() {
    queue(9, 0);
    assertThat(dequeue(TARGET, 1000)).hasToString("k0");
    assertThat(dequeue(TARGET, 1000 + INTERVAL - 1)).hasToString("k1");
    assertThat(dequeue(TARGET, 1000 + INTERVAL)).hasToString("k3");
    assertThat(drops).containsExactly("k2 CODEL");
    assertThat(dequeue(TARGET, 1000 + 2 * INTERVAL - 1)).hasToString("k4");
    assertThat(dequeue(TARGET, 1000 + 2 * INTERVAL)).hasToString("k6");
    assertThat(drops).containsExactly("k5 CODEL");
  }

  @Test
  void aDelayThatOnlyAWrongClockShowedEndsWithItsCorrection() {
    settings.ceilingNanos = TARGET;
    queue(9, 0);
    assertThat(dequeue(HOUR, 0)).hasToString("k0");
    assertThat(dequeue(HOUR, INTERVAL - 1)).hasToString("k1");
    assertThat(dequeue(TARGET - 1, INTERVAL)).hasToString("k2");
    assertThat(drops).isEmpty();
    assertThat(flow.armed).isFalse();
  }

  /** Of packets an hour and more old: before the clock steps back, and after. */
  @Test
  void aDelayThatStandsWhateverTheClockShowsIsCutOnInTurn() {
    queue(9, -2 * HOUR);
    startDropping();
    long dropNanos = TARGET + 2 * INTERVAL;
    assertThat(dequeue(dropNanos - 1 - HOUR, dropNanos - 1)).hasToString("k3");
    assertThat(dequeue(dropNanos - HOUR, dropNanos)).hasToString("k5");
    assertThat(drops).containsExactly("k4 CODEL");
  }

  /** However old everything looks: that must stand for an interval first. */
  @Test
  void aClockThatJumpsAheadGivesWhatIsQueuedAnInterval() {
    settings.ceilingNanos = TARGET;
    queue(9, 0);
    assertThat(dequeue(0, 0)).hasToString("k0");
    assertThat(dequeue(HOUR, 1)).hasToString("k1");
    assertThat(dequeue(HOUR, INTERVAL)).hasToString("k2");
    assertThat(dequeue(HOUR, INTERVAL + 1)).hasToString("k8");
    assertThat(drops)
        .containsExactly("k3 CODEL", "k4 CEILING", "k5 CEILING", "k6 CEILING", "k7 CEILING");
  }

  @Test
  void expiryGoesByWhatTheClockShows() {
    queue(3, 0, 50);
    assertThat(dequeue(50, HOUR)).hasToString("k0");
    assertThat(dequeue(40, 2 * HOUR)).hasToString("k1");
    assertThat(dequeue(51, 2 * HOUR)).isNull();
    assertThat(drops).containsExactly("k2 EXPIRED");
  }

  @Test
  void parametersOutOfRangeAreRefused() {
    assertThatThrownBy(() -> new Codel(-1, 1, 0, -1, false, -1))
        .hasMessage("targetNanos must be at least 0, was -1");
    assertThatThrownBy(() -> new Codel(0, 0, 0, -1, false, -1))
        .hasMessage("intervalNanos must be at least 1, was 0");
    assertThatThrownBy(() -> new Codel(0, 1, -1, -1, false, -1))
        .hasMessage("mtu must be at least 0, was -1");
    assertThatThrownBy(() -> new Codel(5, 1, 0, 4, false, -1))
        .hasMessage("ceilingNanos must be at least 5, was 4");
  }

  /** Leaves the flow dropping, with k0, k1 and k2 gone. */
  private void startDropping() {
    assertForwarded("k0", TARGET);
    assertForwarded("k2", TARGET + INTERVAL, "k1 CODEL");
    assertThat(flow.dropping).isTrue();
  }

  private void queue(int packets, long timestampNanos) {
    queue(packets, timestampNanos, Packet.NEVER);
  }

  private void queue(int packets, long timestampNanos, long expiresNanos) {
    for (int i = 0; i < packets; i++) {
      flow.offer(new KeyedPacket("k", nextId++, timestampNanos, 1, 1, false, expiresNanos));
    }
  }

  private void queueMarkable(int packets) {
    for (int i = 0; i < packets; i++) {
      flow.offer(new KeyedPacket("k", nextId++, 0, 1, 1, true, Packet.NEVER));
    }
  }

  private void assertForwarded(String expected, long nowNanos, String... expectedDrops) {
    KeyedPacket packet = dequeue(nowNanos);
    assertThat(packet == null ? null : packet.toString()).isEqualTo(expected);
    assertThat(drops).containsExactly(expectedDrops);
  }

  private void assertMarked(String expected, long nowNanos, int marks) {
    KeyedPacket packet = dequeue(nowNanos);
    assertThat(packet).hasToString(expected);
    assertThat(packet.marks()).isEqualTo(marks);
    assertThat(drops).isEmpty();
  }

  private KeyedPacket dequeue(long nowNanos) {
    return dequeue(nowNanos, nowNanos);
  }

  private KeyedPacket dequeue(long nowNanos, long elapsedNanos) {
    drops.clear();
    return settings
        .codel()
        .dequeue(
            flow, nowNanos, elapsedNanos, (packet, reason) -> drops.add(packet + " " + reason));
  }
}
