package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Two tasks on one thread, without a rate; the target of 100 ms makes slices of at most 30 ms. */
class PaceTest {
  private static final Duration TARGET = Duration.ofMillis(100);

  private final Pace.Siblings siblings = new Pace.Siblings();
  private final Pace one = new Pace(null, TARGET, 0, siblings);
  private final Pace other = new Pace(null, TARGET, 0, siblings);

  /** Else each would serve after the first record that it reads, and input would pile up unread. */
  @Test
  void theSliceOfAnotherTaskIsNoTimeForReading() {
    slice(one, 0, 1000);
    slice(other, 1000, 2000);
    assertThat(one.read(0, nanos(2499))).isFalse();
    assertThat(one.read(0, nanos(2500))).as("half a millisecond of reading").isTrue();
    one.beginSlice(nanos(2500));
    assertThat(one.mayServe(nanos(2500 + 9749))).isTrue();
    assertThat(one.mayServe(nanos(2500 + 9750))).as("39 x 0.5 ms for two").isFalse();
  }

  @Test
  void tasksWithABacklogTakeTurns() {
    slice(one, 0, 1000);
    slice(other, 1000, 2000);
    slice(one, 2500, 12_250);
    assertThat(one.read(0, nanos(13_000))).as("twice in turn").isFalse();
    assertThat(other.read(0, nanos(13_000))).isTrue();
    slice(other, 13_000, 22_750);
    assertThat(one.read(0, nanos(22_750))).isTrue();
  }

  /** Nothing may come for the other: then it serves at ticks only. */
  @Test
  void aTaskWaitsForTheTurnOfAnotherNoLongerThanItReadsWhatIsLate() {
    slice(other, 0, 1000);
    slice(one, 1000, 2000);
    assertThat(one.read(0, nanos(11_999))).isFalse();
    assertThat(one.read(0, nanos(12_000))).isTrue();
  }

  @Test
  void aTaskWithoutABacklogWaitsForNoTurn() {
    slice(one, 0, 1000);
    other.close();
    assertThat(one.read(0, nanos(1500))).isTrue();
  }

  /** A longer slice would delay what the other task reads. */
  @Test
  void inputIsIdleOnlyIfNoTaskOfTheThreadReads() {
    assertThat(lengthOfIdleSlice(10)).isEqualTo(30);
    assertThat(lengthOfIdleSlice(50)).isEqualTo(60);
    assertThat(lengthOfIdleSlice(120)).isEqualTo(100);
    other.read(0, nanos(221_000));
    assertThat(lengthOfIdleSlice(230)).as("the other reads").isEqualTo(30);
    assertThat(lengthOfIdleSlice(270)).isEqualTo(30);
    assertThat(lengthOfIdleSlice(310)).isEqualTo(60);
  }

  private int lengthOfIdleSlice(long startMs) {
    assertThat(one.tick(nanos(startMs * 1000))).isTrue();
    return lengthOfSlice(startMs * 1000);
  }

  private int lengthOfSlice(long startMicros) {
    one.beginSlice(nanos(startMicros));
    int ms = 0;
    while (one.mayServe(nanos(startMicros + ms * 1000L))) {
      ms++;
    }
    one.endSlice(false, nanos(startMicros + ms * 1000L));
    return ms;
  }

  /** One that leaves a backlog. */
  private static void slice(Pace pace, long startMicros, long endMicros) {
    pace.beginSlice(nanos(startMicros));
    pace.endSlice(false, nanos(endMicros));
  }

  private static long nanos(long micros) {
    return micros * 1000;
  }
}
