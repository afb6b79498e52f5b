package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.ShaperOptions;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A broker, container or not, that stands still: nothing is refused, nothing is answered. */
class PausedBrokerIT {
  private static final Duration PAUSE = Duration.ofSeconds(10);
  private static final Duration PATIENCE = Duration.ofSeconds(90);

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

  /** Under exactly-once the broker aborts the transaction, as old as this, when it wakes up. */
  @ParameterizedTest
  @ValueSource(strings = {StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2})
  void theApplicationRecoversWithoutHelpAndLosesNothing(String guarantee) throws Exception {
    Step step = new Step(() -> {});
    try (Application application =
            new Application(
                admin, broker.bootstrapServers(), Application.config(guarantee), step::processor);
        Load load = new Load(broker.bootstrapServers(), application.in(), 2000, 20, 5)) {
      application.start(ShaperOptions.builder().rate(500).build());
      var sending = CompletableFuture.runAsync(() -> load.run(PAUSE.plusSeconds(10)));
      await(() -> step.calls() >= 1000);

      broker.pause();
      Thread.sleep(PAUSE.toMillis());
      broker.resume();

      sending.join();
      await(() -> application.committed() >= load.sent());
      application.stop();
      Ledger ledger = application.ledger();
      assertThat(ledger.violations()).isEmpty();
      Ledger.Account hot = ledger.total(Load::isHot);
      assertThat(hot.dropped()).isPositive();
      assertThat(hot.forwarded()).isPositive();
      assertThat(ledger.total(key -> true).sent())
          .as("as acknowledged, and what a busy machine acknowledged too late")
          .isGreaterThanOrEqualTo(load.sent());
      assertThat(ledger.total(key -> true).unread()).isZero();
    }
  }

  private static void await(Callable<Boolean> condition) throws Exception {
    long startNanos = System.nanoTime();
    while (!condition.call()) {
      assertThat(System.nanoTime() - startNanos).as("waited").isLessThan(PATIENCE.toNanos());
      Thread.sleep(20);
    }
  }
}
