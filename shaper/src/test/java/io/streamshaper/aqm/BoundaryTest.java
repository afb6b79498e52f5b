package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Where one more or one less decides: mutation testing found that nothing else would notice. */
class BoundaryTest {
  @Test
  void aCeilingOfZeroIsACeiling() {
    assertThatThrownBy(() -> new Codel(5, 1, 0, 0, false, -1))
        .hasMessage("ceilingNanos must be at least 5, was 0");
    Codel codel = new Codel(0, 10, 0, 0, false, -1);
    Flow<String, KeyedPacket> flow = new Flow<>();
    for (int i = 0; i < 6; i++) {
      flow.offer(KeyedPacket.of("k", i, 0));
    }
    List<String> drops = new ArrayList<>();
    for (long now : new long[] {1, 11}) {
      codel.dequeue(flow, now, now, (packet, reason) -> drops.add(packet + " " + reason));
    }
    assertThat(drops).containsExactly("k1 CODEL", "k2 CEILING", "k3 CEILING", "k4 CEILING");
  }

  @Test
  void theLongestIntervalWhoseMemoryDoesNotOverflowIsNotCutShort() {
    long intervalNanos = Long.MAX_VALUE / 16;
    Codel codel = new Codel(5, intervalNanos, 0, -1, false, -1);
    Flow<String, KeyedPacket> flow = new Flow<>();
    flow.hasDropNext = true;
    assertThat(codel.mayForget(flow, 16 * intervalNanos - 1)).isFalse();
    assertThat(codel.mayForget(flow, 16 * intervalNanos)).isTrue();
  }

  @Test
  void whatABucketWouldHaveAtATimeIsWhatItThenHas() {
    TokenBucket bucket = new TokenBucket(1e9, 2);
    assertThat(bucket.hasTokenAt(0)).as("at the start").isTrue();
    bucket.refill(0);
    bucket.take(3);
    for (long now = 0; now <= 4; now++) {
      boolean then = bucket.hasTokenAt(now);
      assertThat(then).as("at %d", now).isEqualTo(now >= 2);
      bucket.refill(now);
      assertThat(bucket.hasToken()).as("at %d", now).isEqualTo(then);
    }
  }

  /** Else the tests that count them would prove nothing. */
  @Test
  void everyStepIsCounted() {
    FqCodel<String, KeyedPacket> scheduler = new Settings().scheduler((packet, reason) -> {});
    for (int i = 0; i < 8; i++) {
      scheduler.enqueue("k" + i, KeyedPacket.of("k" + i, 0, 0));
    }
    assertThat(scheduler.steps()).as("equals, first listed on top").isZero();
    scheduler.enqueue("k7", KeyedPacket.of("k7", 1, 0));
    assertThat(scheduler.steps()).as("from the fourth level of the heap to its top").isEqualTo(3);
    scheduler.dequeue(0, Long.MAX_VALUE);
    assertThat(scheduler.steps()).as("one flow visited, which keeps its place").isEqualTo(3 + 1);
  }

  @Test
  void anEmptyFlowIsNotAmongTheFattest() {
    FqCodel<String, KeyedPacket> scheduler = new Settings().scheduler((packet, reason) -> {});
    scheduler.enqueue("a", KeyedPacket.of("a", 0, 0));
    scheduler.enqueue("b", KeyedPacket.of("b", 0, 0));
    scheduler.dequeue(0, Long.MAX_VALUE);
    assertThat(scheduler.newFlows() + scheduler.oldFlows()).isEqualTo(2);
    assertThat(scheduler.fattest(5)).extracting(FlowState::key).containsExactly("b");
  }
}
