package io.streamshaper;

import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** A wall clock that is corrected: an hour ahead and back, as a wrong time server makes it. */
class ShaperClockTest {
  private static final long HOUR_MS = Duration.ofHours(1).toMillis();

  @Test
  void noFreshRecordExpiresAfterAClockThatJumpedAnHourAheadAndBack() {
    try (TestTopology test = TestTopology.of(patient(100).maxAge(Duration.ofMinutes(1)))) {
      test.step(HOUR_MS).pipe("k", "ahead").stepBack(HOUR_MS);
      for (int i = 0; i < 1000; i++) {
        test.pipe("k", "k" + i).step(TestTopology.TICK_MS);
      }
      test.advance(100);
      assertThat(test.dropped).isEmpty();
      assertThat(test.forwarded).hasSize(1001);
      test.checkLaw();
    }
  }

  /** 60 minutes that the clock was ahead, and 40 that pass: 100 by a clock for durations. */
  @Test
  void whatWasQueuedBeforeTheClockSteppedBackIsJudgedByTheCorrectedOne() {
    try (TestTopology test = TestTopology.of(patient(1).burst(1).maxAge(Duration.ofMinutes(90)))) {
      long trueMs = test.nowMs();
      test.step(HOUR_MS);
      for (int i = 0; i < 2400; i++) {
        test.pipe("k", "k" + i, trueMs);
      }
      test.stepBack(HOUR_MS).pipe("other", "seen", trueMs);
      for (int i = 0; i < 2400; i++) {
        test.step(1000);
      }
      assertThat(test.dropped).isEmpty();
      assertThat(test.forwarded).hasSize(2401);
      test.checkLaw();
    }
  }

  /** 200 a second offered, 100 served: what is dropped is the hot key's, as ever. */
  @Test
  void aQuietKeyIsUnharmedByAClockThatJumpsAheadAndBack() {
    try (TestTopology test = TestTopology.of(ShaperOptions.builder().rate(100))) {
      for (int i = 0; i < 1500; i++) {
        if (i == 500) {
          test.step(HOUR_MS);
        } else if (i == 1000) {
          test.stepBack(HOUR_MS);
        }
        test.pipe("hot", "h" + i).pipe("hot", "g" + i);
        if (i % 20 == 0) {
          test.pipe("quiet", "q" + i);
        }
        test.step(TestTopology.TICK_MS);
      }
      test.drain().checkLaw();
      assertThat(test.dropped).extracting(TestTopology.Out::key).containsOnly("hot");
      assertThat(test.forwarded).filteredOn(out -> out.key().equals("quiet")).hasSize(75);
    }
  }

  /** The delay is 30 to 40 ms, the target 100 ms: there is nothing to cut, whatever the clock. */
  @Test
  void aShortQueueIsNotCutAfterAClockThatJumpedAheadAndBack() {
    try (TestTopology test = TestTopology.of(ShaperOptions.builder().rate(100).burst(2))) {
      test.step(HOUR_MS).pipe("k", "ahead").stepBack(HOUR_MS);
      test.pipeMany("k", 0, 4);
      for (int i = 4; i < 1000; i++) {
        test.pipe("k", "k" + i).step(TestTopology.TICK_MS);
      }
      test.drain().checkLaw();
      assertThat(test.dropped).isEmpty();
    }
  }

  /** One record of input suffices; the clock is behind for an hour. */
  @Test
  void ticksGoOnAfterTheClockSteppedBack() {
    try (TestTopology test = TestTopology.of(patient(10).burst(1))) {
      test.pipeMany("k", 0, 20).stepBack(HOUR_MS).advance(1000);
      assertThat(test.forwarded).as("without input nobody notices").hasSize(1);
      test.pipe("k", "noticed").advance(1000);
      assertThat(test.forwarded).as("what ten a second let through").hasSize(11);
      test.advance(1000);
      assertThat(test.forwarded).hasSize(21);
      test.checkLaw();
    }
  }

  @Test
  void aClockThatKeepsSteppingBackLeavesOneTickAtATime() {
    FakeTask task = new FakeTask((record, child) -> {});
    task.backMs = 1;
    task.start(shaper(patient(10)));
    for (int i = 0; i < 100; i++) {
      task.pipe("k", "k" + i, task.nowMs);
      assertThat(task.punctuations).isEqualTo(1);
    }
  }

  @Test
  void stepsBackAreCounted() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    Shaper<String, String> shaper = shaper(patient(10)).metrics(ShaperMetrics.in(registry));
    try (TestTopology test = TestTopology.of(shaper)) {
      test.pipe("k", "a").stepBack(1).pipe("k", "b").pipe("k", "c").step(HOUR_MS).pipe("k", "d");
      test.stepBack(HOUR_MS).pipe("k", "e").advance(100);
      assertThat(registry.get("shaper.clock.steps").functionCounter().count()).isEqualTo(2);
    }
  }
}
