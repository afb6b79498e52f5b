package io.streamshaper;

import static io.streamshaper.TestTopology.START_MS;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import org.apache.kafka.common.errors.SerializationException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How long one call holds the thread, with steps behind that take a millisecond for a record. */
class ShaperSliceTest {
  private static final int MANY = 20_000;

  private int forwarded;
  private int dropped;
  private final FakeTask task =
      new FakeTask(
          (record, child) -> {
            if (child.endsWith("-forwarded")) {
              forwarded++;
            } else {
              dropped++;
            }
            tookMs(1);
          });

  private void tookMs(long ms) {
    task.nowMs += ms;
  }

  @AfterEach
  void close() {
    task.close();
  }

  @ParameterizedTest
  @CsvSource({"100, 100", "5, 5", "86400000, 1000"})
  void aTickWorksNoLongerThanTheTargetNorASecond(long targetMs, long mostMs) {
    ShaperOptions.Builder options =
        ShaperOptions.builder()
            .target(Duration.ofMillis(targetMs))
            .interval(Duration.ofDays(30))
            .maxRecords(MANY);
    task.start(shaper(options));
    pipeLate(MANY);
    assertThat(forwarded).isZero();
    for (int i = 0; i < 5; i++) {
      tookMs(10);
      long startMs = task.nowMs;
      int before = forwarded;
      task.tick();
      assertThat(forwarded - before).as("tick %d", i).isPositive();
      assertThat(task.nowMs - startMs).isLessThanOrEqualTo(mostMs);
    }
  }

  /** The clock is looked at again after each 256 drops. */
  @Test
  void aTickThatOnlyDropsEndsAsWell() {
    ShaperOptions.Builder options = ShaperOptions.builder().maxAge(Duration.ofMinutes(1));
    task.start(shaper(options));
    pipeLate(5_000);
    task.nowMs += 120_000;
    while (dropped < 5_000) {
      tookMs(10);
      long startMs = task.nowMs;
      task.tick();
      assertThat(task.nowMs - startMs).isBetween(1L, 100L + 256);
    }
    assertThat(forwarded).isZero();
  }

  @Test
  void aTaskWithoutTokensReturnsAtOnce() {
    task.start(shaper(ShaperOptions.builder().rate(1).burst(1).target(Duration.ofMillis(900))));
    task.pipe("k", "takes the token", START_MS);
    long startMs = task.nowMs;
    for (int i = 0; i < 1000; i++) {
      task.pipe("k" + i, "v", START_MS);
      task.tick();
    }
    assertThat(task.nowMs).as("time taken").isEqualTo(startMs);
    assertThat(forwarded).isEqualTo(1);
    tookMs(1000);
    task.tick();
    assertThat(forwarded).isEqualTo(2);
  }

  @Test
  void aRestartThatFindsMoreThanTheLimitAllowsDropsForABoundedTimeAtOnce() {
    ShaperOptions.Builder options =
        ShaperOptions.builder()
            .target(Duration.ofDays(1))
            .interval(Duration.ofDays(2))
            .rate(1)
            .burst(1);
    task.start(shaper(options));
    for (int i = 0; i < 5001; i++) {
      task.pipe("k" + i % 3, "v", START_MS);
    }
    task.commit();
    task.start(shaper(options.maxRecords(10).dropBatch(1)));
    for (int calls = 1; dropped < 4991; calls++) {
      long startMs = task.nowMs;
      task.pipe("first", "v", START_MS);
      assertThat(task.nowMs - startMs).isLessThanOrEqualTo(1001);
      assertThat(calls).isLessThanOrEqualTo(6);
    }
  }

  @Test
  void aRangeHasTwoBoundsAndIsClosedAlsoWhenItsRecordsCannotBeRead() {
    task.start(shaper(ShaperOptions.builder().rate(1).burst(1)));
    for (int i = 0; i < 100; i++) {
      task.pipe("k", "v" + i, START_MS);
    }
    task.commit();
    task.start(shaper(ShaperOptions.builder()));
    assertThat(task.openIterators).isZero();
    task.truncateStored();
    assertThatThrownBy(() -> task.start(shaper(ShaperOptions.builder())))
        .isInstanceOf(SerializationException.class);
    assertThat(task.openIterators).isZero();
    assertThat(task.ranges).as("blocks and remainders, three times").isEqualTo(6);
  }

  private void pipeLate(int records) {
    for (int i = 0; i < records; i++) {
      task.pipe("k" + i % 7, "v", START_MS - 30);
    }
  }
}
