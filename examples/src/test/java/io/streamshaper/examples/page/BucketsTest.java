package io.streamshaper.examples.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class BucketsTest {
  private final MeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
  private final Timer one = timer("0_0");
  private final Timer other = timer("0_1");

  @Test
  void whatIsSlowInOneTaskCountsInTheWhole() {
    record(one, 5, 98);
    record(other, 50, 2);

    Snapshot.Delay delay = now().since(Buckets.NONE);

    assertThat(delay.p50()).isBetween(2.0, 10.0);
    assertThat(delay.p99()).isBetween(10.0, 100.0);
    assertThat(delay.max()).isEqualTo(100);
  }

  @Test
  void withinABucketRecordsAreSpreadEvenly() {
    record(one, 5, 100);

    Snapshot.Delay delay = now().since(Buckets.NONE);

    assertThat(delay.p50()).isCloseTo(5, within(1e-9)); // the bucket is 0 to 10 ms
    assertThat(delay.p99()).isCloseTo(9.9, within(1e-9));
  }

  @Test
  void whatWasThereBeforeDoesNotCount() {
    record(one, 500, 1000);
    Buckets before = now();
    record(one, 5, 10);

    assertThat(now().since(before).max()).isEqualTo(10);
  }

  @Test
  void aSecondWithoutRecordsHasNoDelay() {
    record(one, 5, 10);
    Buckets before = now();

    assertThat(now().since(before)).isEqualTo(new Snapshot.Delay(null, null, null));
    assertThat(Buckets.NONE.since(Buckets.NONE)).isEqualTo(new Snapshot.Delay(null, null, null));
  }

  @Test
  void aTaskThatLeftMakesNoDelay() {
    record(one, 5, 10);
    record(other, 50, 10);
    Buckets before = now();
    registry.remove(other);
    record(one, 5, 20);

    assertThat(Buckets.of(List.of(one)).since(before))
        .isEqualTo(new Snapshot.Delay(null, null, null));
  }

  @Test
  void beyondTheLastBoundIsAtTheLastBound() {
    record(one, 5000, 1);

    assertThat(now().since(Buckets.NONE).p50()).isEqualTo(1000);
  }

  private Buckets now() {
    return Buckets.of(List.of(one, other));
  }

  private Timer timer(String task) {
    return Timer.builder("shaper.sojourn")
        .tag("task", task)
        .serviceLevelObjectives(
            Duration.ofMillis(10), Duration.ofMillis(100), Duration.ofMillis(1000))
        .register(registry);
  }

  private static void record(Timer timer, long ms, int times) {
    for (int i = 0; i < times; i++) {
      timer.record(Duration.ofMillis(ms));
    }
  }
}
