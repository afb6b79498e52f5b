package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.ShaperOptions;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The shaper between real topics. Every test ends with the law. */
class ShaperIT {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final Duration NEVER = Duration.ofDays(1);

  private static TestBroker broker;
  private static Admin admin;

  @BeforeAll
  static void startBroker() throws Exception {
    broker = TestBroker.start();
    admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()));
  }

  @AfterAll
  static void stopBroker() {
    admin.close();
    broker.close();
  }

  @ParameterizedTest
  @ValueSource(strings = {StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2})
  void everyRecordOfAnOverloadIsForwardedOrDroppedOrStillQueued(String guarantee) throws Exception {
    Step step = new Step(() -> {});
    try (Application application = application(guarantee, step);
        Load load = new Load(broker.bootstrapServers(), application.in(), 5000, 50, 5)) {
      application.start(ShaperOptions.builder().rate(1000).build());
      load.run(Duration.ofSeconds(5));
      application.stop();

      Ledger ledger = application.ledger();
      assertThat(ledger.violations()).isEmpty();
      Ledger.Account hot = ledger.total(Load::isHot);
      Ledger.Account quiet = ledger.total(key -> !Load.isHot(key));
      assertThat(hot.dropped()).isPositive();
      assertThat(quiet.dropped()).isZero();
      assertThat(hot.forwarded()).isPositive();
      assertThat(quiet.forwarded()).isPositive();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2})
  void aRestartWithTwentyThousandRecordsQueuedLosesAndRepeatsNothing(String guarantee)
      throws Exception {
    Step step = new Step(() -> {});
    ShaperOptions.Builder patient =
        ShaperOptions.builder().target(NEVER).interval(NEVER.multipliedBy(2));
    try (Application application = application(guarantee, step);
        Load load = new Load(broker.bootstrapServers(), application.in(), 20_000, 50, 100)) {
      application.start(patient.rate(500).build());
      load.run(Duration.ofSeconds(1));
      awaitRead(application, load.sent());
      application.stop();
      Ledger stopped = application.ledger();
      assertThat(stopped.violations()).isEmpty();
      assertThat(stopped.total(key -> true).queued()).isGreaterThan(20_000);

      application.start(patient.rate(100_000).build());
      await(() -> step.calls() >= load.sent());
      application.stop();
      Ledger drained = application.ledger();
      assertThat(drained.violations()).isEmpty();
      assertThat(drained.total(key -> true).queued()).isZero();
      assertThat(drained.total(key -> true).forwarded()).isEqualTo(load.sent());
    }
  }

  /** The founding case on a real topic: a downstream step takes 64 records in 14 ms. */
  @Test
  void aQuietKeyBesideAFloodLosesNothingForAMinute() throws Exception {
    Step step = new Step(deviceThatTakes64RecordsIn14Ms());
    try (Application application = application(StreamsConfig.AT_LEAST_ONCE, step);
        Load load = new Load(broker.bootstrapServers(), application.in(), 6000, 1, 5)) {
      application.start(
          ShaperOptions.builder()
              .target(Duration.ofMillis(5))
              .interval(Duration.ofMillis(100))
              .build());
      load.run(Duration.ofSeconds(60));
      application.stop();

      Ledger ledger = application.ledger();
      assertThat(ledger.violations()).isEmpty();
      assertThat(ledger.total(Load::isHot).dropped()).isPositive();
      Ledger.Account quiet = ledger.total(key -> !Load.isHot(key));
      assertThat(quiet.sent()).isBetween(290L, 310L);
      assertThat(quiet.dropped()).isZero();
    }
  }

  private static Step.Call deviceThatTakes64RecordsIn14Ms() {
    int[] taken = {0};
    Step.Call batch = Step.Call.blocking(Duration.ofMillis(14).toNanos());
    return () -> {
      if (++taken[0] % 64 == 0) {
        batch.run();
      }
    };
  }

  private static Application application(String guarantee, Step step) throws Exception {
    return new Application(
        admin, broker.bootstrapServers(), Application.config(guarantee), step::processor);
  }

  private static void awaitRead(Application application, long records) throws Exception {
    await(() -> application.committed() >= records);
  }

  private static void await(Callable<Boolean> condition) throws Exception {
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.call()) {
      assertThat(System.nanoTime()).as("deadline").isLessThan(deadline);
      LockSupport.parkNanos(Duration.ofMillis(20).toNanos());
    }
  }
}
