package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.ShaperOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Kills the application at random moments, with records queued and more coming. {@code
 * -Dcrash.kills=N} for more than three a combination, {@code -Dcrash.seed=N} for the same moments
 * again.
 */
class CrashIT {
  private static final int KILLS = Integer.getInteger("crash.kills", 3);

  /** On a busy machine the first ones may come before anything is queued and committed. */
  private static final int MOST_KILLS = KILLS + 10;

  private static final long SEED =
      Long.getLong("crash.seed", ThreadLocalRandom.current().nextLong());

  /** From Kafka 4.4 on. */
  private static final String TRANSACTIONAL_STORES = "enable.transactional.statestores";

  private static final Duration NEVER = Duration.ofDays(1);

  private static Broker broker;
  private static Admin admin;

  /** One way to run the application. */
  record Combination(
      String guarantee,
      ShaperOptions.Store store,
      boolean transactionalStores,
      boolean cached,
      boolean rated,
      boolean dropping) {

    Map<String, Object> streams() {
      Map<String, Object> config = new HashMap<>();
      config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
      config.put(TRANSACTIONAL_STORES, transactionalStores);
      if (!cached) {
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
      }
      config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
      return config;
    }

    /** Takes a third of what comes, by its rate or because a step takes 5 ms for each. */
    Map<String, Object> overloaded() {
      Map<String, Object> settings = streams();
      settings.put("shaper.store", store.name().toLowerCase(Locale.ROOT));
      if (rated) {
        settings.put("shaper.rate", 200);
      } else {
        settings.put(ChildApplication.CALL_MICROS, 5000);
      }
      settings.put("shaper.target.ms", 200);
      settings.put("shaper.interval.ms", dropping ? 500 : NEVER.toMillis());
      return settings;
    }

    ShaperOptions unhurried() {
      return ShaperOptions.builder()
          .store(store)
          .target(NEVER)
          .interval(NEVER.multipliedBy(2))
          .build();
    }
  }

  /** Every value of everything with each guarantee and store. */
  static Stream<Combination> combinations() {
    List<Combination> all = new ArrayList<>();
    for (String guarantee : List.of(StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2)) {
      for (ShaperOptions.Store store : ShaperOptions.Store.values()) {
        boolean one = guarantee.equals(StreamsConfig.AT_LEAST_ONCE);
        boolean other = store == ShaperOptions.Store.MEMORY;
        all.add(new Combination(guarantee, store, true, one, other, one ^ other));
        all.add(new Combination(guarantee, store, false, !one, !other, one ^ other));
      }
    }
    return all.stream();
  }

  @BeforeAll
  static void startBroker() throws Exception {
    broker = Broker.start(ChildApplication.BROKER_SETTINGS);
    admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()));
  }

  @AfterAll
  static void stopBroker() {
    admin.close();
    broker.close();
  }

  @ParameterizedTest
  @MethodSource("combinations")
  @Execution(ExecutionMode.CONCURRENT)
  void nothingIsLostThroughKills(Combination combination) throws Exception {
    long start = System.nanoTime();
    Random random = new Random(SEED ^ combination.toString().hashCode());
    Step step = new Step(() -> {});
    try (Application application =
            new Application(
                admin, broker.bootstrapServers(), combination.streams(), step::processor);
        BackgroundLoad load =
            new BackgroundLoad(new Load(broker.bootstrapServers(), application.in(), 500, 20, 5))) {
      long restored = 0;
      int kills = 0;
      while (kills < KILLS || (restored == 0 && kills < MOST_KILLS)) {
        restored += runAndKill(application, combination, random);
        kills++;
      }
      load.stop();

      application.start(combination.unhurried());
      Patience.awaitDrained(application, load.sent());
      application.stop();

      Ledger ledger = application.ledger();
      Ledger.Account total = ledger.total(key -> true);
      System.out.printf(
          "%d kills in %d s, %d records restored: %s, seed %d: %s%n",
          kills,
          Duration.ofNanos(System.nanoTime() - start).toSeconds(),
          restored,
          combination,
          SEED,
          total);
      assertThat(ledger.violations(Guarantee.of(combination.guarantee)))
          .as("seed " + SEED)
          .isEmpty();
      assertThat(ledger.replays())
          .as("one of the queue and one of the input for each kill, seed " + SEED)
          .isLessThanOrEqualTo(2L * kills);
      assertThat(total.sent())
          .as("as acknowledged, and what a busy machine acknowledged too late")
          .isGreaterThanOrEqualTo(load.sent());
      assertThat(total.queued() + total.unread()).isZero();
      assertThat(restored).as("records queued when it was killed").isPositive();
    }
  }

  private static long runAndKill(Application application, Combination combination, Random random)
      throws Exception {
    try (ChildApplication child =
        ChildApplication.start(broker.bootstrapServers(), application, combination.overloaded())) {
      child.awaitRunning();
      LockSupport.parkNanos(Duration.ofMillis(500 + random.nextInt(2500)).toNanos());
      child.kill();
      return child.restored();
    }
  }
}
