package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.ShaperOptions;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The broker fails under load; the application stays up and recovers without help. */
class BrokerFaultIT {
  private static final Duration NEVER = Duration.ofDays(1);
  private static final Duration OUTAGE = Duration.ofSeconds(10);

  private static Broker broker;
  private static Admin admin;

  /** What happens to the broker, until it is well again. */
  private interface Fault {
    void happen() throws Exception;
  }

  @BeforeAll
  static void startBroker() throws Exception {
    broker = Broker.start();
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
  void aBrokerThatIsKilledAndRestartedCostsNothing(String guarantee) throws Exception {
    survives(guarantee, broker::restart);
  }

  @ParameterizedTest
  @ValueSource(strings = {StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2})
  void aBrokerThatStandsStillForTenSecondsCostsNothing(String guarantee) throws Exception {
    survives(
        guarantee,
        () -> {
          broker.pause();
          LockSupport.parkNanos(OUTAGE.toNanos()); // the fault itself
          broker.resume();
        });
  }

  private static void survives(String guarantee, Fault fault) throws Exception {
    Step step = new Step(() -> {});
    try (Application application = application(guarantee, step);
        BackgroundLoad load =
            new BackgroundLoad(
                new Load(broker.bootstrapServers(), application.in(), 1000, 20, 5))) {
      application.start(
          ShaperOptions.builder().rate(800).target(NEVER).interval(NEVER.multipliedBy(2)).build());
      Patience.await("records are flowing, and queued", () -> step.calls() > 2000);

      fault.happen();
      long sent = load.sent();
      long calls = step.calls();
      Patience.await("producer is well again", () -> load.sent() > sent + 2000);
      Patience.await("application is well again", () -> step.calls() > calls + 2000);
      load.stop();
      Patience.awaitDrained(application, load.sent());
      assertThat(application.isAlive()).isTrue();
      application.stop();

      Ledger ledger = application.ledger();
      Ledger.Account total = ledger.total(key -> true);
      System.out.println(guarantee + ": " + total);
      assertThat(ledger.violations(Guarantee.of(guarantee))).isEmpty();
      assertThat(total.sent()).isGreaterThanOrEqualTo(load.sent());
      assertThat(total.queued() + total.unread()).isZero();
    }
  }

  /** Its transactions time out while the broker stands still. */
  private static Application application(String guarantee, Step step) throws Exception {
    Map<String, Object> config = new HashMap<>(Application.config(guarantee));
    config.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, 5000);
    return new Application(admin, broker.bootstrapServers(), config, step::processor);
  }
}
