package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.ShaperOptions;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.GroupProtocol;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.TaskId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Instances come, leave and are killed under load, with a standby for each task. Those that leave
 * live in this JVM, those that are killed in JVMs of their own. {@code -Drebalance.changes=N} for
 * more than twenty, {@code -Drebalance.seed=N} for the same ones again.
 */
class RebalanceIT {
  private static final int CHANGES = Integer.getInteger("rebalance.changes", 20);
  private static final int MOST_CHANGES = 3 * CHANGES;
  private static final long SEED =
      Long.getLong("rebalance.seed", ThreadLocalRandom.current().nextLong());

  private static final int PARTITIONS = 6;
  private static final int MOST_INSTANCES = 3;
  private static final int STANDBYS = 1;
  private static final Duration NEVER = Duration.ofDays(1);

  /** After which a killed instance is no longer waited for. */
  private static final int SESSION_TIMEOUT_MS = 4000;

  private static final int HEARTBEAT_MS = 500;

  /** No instance is too far behind to take over at once. */
  private static final long ANY_LAG = Integer.MAX_VALUE;

  private static Broker broker;
  private static Admin admin;

  /** With the streams protocol, it is the broker that knows most of what an instance does else. */
  @BeforeAll
  static void startBroker() throws Exception {
    broker =
        Broker.start(
            Map.ofEntries(
                Map.entry("group.min.session.timeout.ms", "1000"),
                Map.entry("group.streams.session.timeout.ms", "" + SESSION_TIMEOUT_MS),
                Map.entry("group.streams.min.session.timeout.ms", "1000"),
                Map.entry("group.streams.heartbeat.interval.ms", "" + HEARTBEAT_MS),
                Map.entry("group.streams.min.heartbeat.interval.ms", "100"),
                Map.entry("group.streams.num.standby.replicas", "" + STANDBYS),
                Map.entry("group.streams.acceptable.recovery.lag", "" + ANY_LAG),
                Map.entry("group.streams.initial.rebalance.delay.ms", "0"),
                Map.entry("transaction.abort.timed.out.transaction.cleanup.interval.ms", "200")));
    admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()));
  }

  @AfterAll
  static void stopBroker() {
    admin.close();
    broker.close();
  }

  @ParameterizedTest
  @CsvSource({
    "CLASSIC, at_least_once",
    "CLASSIC, exactly_once_v2",
    "STREAMS, at_least_once",
    "STREAMS, exactly_once_v2"
  })
  @Execution(ExecutionMode.CONCURRENT)
  void queuedRecordsMoveWithTheirTasks(GroupProtocol protocol, String guarantee) throws Exception {
    long startNanos = System.nanoTime();
    Random random = new Random(SEED ^ (protocol + guarantee).hashCode());
    Step step = new Step(() -> {});
    try (Application application =
            new Application(
                admin,
                broker.bootstrapServers(),
                config(protocol, guarantee),
                step::processor,
                PARTITIONS);
        Instances instances = new Instances(application, config(protocol, guarantee));
        BackgroundLoad load =
            new BackgroundLoad(
                new Load(broker.bootstrapServers(), application.in(), 200, 60, 12))) {
      instances.join();
      for (int change = 0; change < CHANGES || instances.wantMore(change); change++) {
        Map<TopicPartition, Long> before = committed(application);
        instances.change(random);
        if (random.nextInt(4) != 0) { // else one change comes upon the other
          Patience.await("every task goes on", () -> isBehind(before, committed(application)));
        }
      }
      load.stop();
      instances.leave();

      application.start(patient().build());
      Patience.awaitDrained(application, load.sent());
      application.stop();

      Ledger ledger = application.ledger();
      Ledger.Account total = ledger.total(key -> true);
      System.out.printf(
          "%s, %s, %d s, seed %d: %s; %s; replays of a key %d%n",
          protocol,
          guarantee,
          Duration.ofNanos(System.nanoTime() - startNanos).toSeconds(),
          SEED,
          instances,
          total,
          ledger.replays());
      assertThat(ledger.violations(Guarantee.of(guarantee))).as("seed " + SEED).isEmpty();
      assertThat(total.sent())
          .as("as acknowledged, and what a busy machine acknowledged too late")
          .isGreaterThanOrEqualTo(load.sent());
      assertThat(total.queued() + total.unread() + total.dropped()).isZero();
      assertThat(instances.restored)
          .as("records that moved, queued, to JVMs that were killed")
          .isPositive();
      assertThat(instances.tasks.promoted.get())
          .as("standby tasks that became active")
          .isPositive();
      assertThat(instances.tasks.demoted.get())
          .as("active tasks that became standbys")
          .isPositive();
    }
  }

  /** Whether each partition has been read further. */
  private static boolean isBehind(Map<TopicPartition, Long> before, Map<TopicPartition, Long> now) {
    return now.size() == PARTITIONS
        && now.entrySet().stream()
            .allMatch(entry -> before.getOrDefault(entry.getKey(), -1L) < entry.getValue());
  }

  private static Map<TopicPartition, Long> committed(Application application) throws Exception {
    Map<TopicPartition, Long> committed = new HashMap<>();
    for (Map.Entry<TopicPartition, OffsetAndMetadata> entry :
        admin
            .listConsumerGroupOffsets(application.id())
            .partitionsToOffsetAndMetadata()
            .get()
            .entrySet()) {
      committed.put(entry.getKey(), entry.getValue().offset());
    }
    return committed;
  }

  /** The instances of an application that are there. */
  private static final class Instances implements AutoCloseable {
    private final Application application;
    private final Map<String, Object> config;
    private final List<Application> here = new ArrayList<>();
    private final List<Apart> apart = new ArrayList<>();
    private final Tasks tasks = new Tasks();
    private int joins;
    private int leaves;
    private int kills;
    private long restored;

    Instances(Application application, Map<String, Object> config) {
      this.application = application;
      this.config = new HashMap<>(config);
      // Two thirds of what comes, so that each partition's queue grows.
      this.config.put("shaper.rate", 100);
      this.config.put("shaper.target.ms", NEVER.toMillis());
      this.config.put("shaper.interval.ms", 2 * NEVER.toMillis());
    }

    /** Which tasks become standbys, and when, is the assignor's choice: another change may do. */
    boolean wantMore(int changes) {
      boolean bothWays = tasks.promoted.get() > 0 && tasks.demoted.get() > 0;
      return !bothWays && changes < MOST_CHANGES;
    }

    void change(Random random) throws Exception {
      int all = here.size() + apart.size();
      if (all == 1 || (all < MOST_INSTANCES && random.nextBoolean())) {
        join();
      } else if (random.nextInt(all) < here.size()) {
        leave(random.nextInt(here.size()));
      } else {
        kill(random.nextInt(apart.size()));
      }
    }

    /** Here and apart by turns. */
    void join() throws Exception {
      if (joins++ % 2 == 0) {
        Application instance = application.instance(config, new Step(() -> {})::processor);
        here.add(instance);
        instance.start(ShaperOptions.from(config), tasks::listenTo);
      } else {
        Apart instance = Apart.start(application, config);
        apart.add(instance);
        instance.child.awaitRunning();
      }
    }

    private void leave(int index) {
      leaves++;
      try (Application instance = here.remove(index)) {
        assertThat(instance.isAlive()).isTrue();
        instance.stop();
      }
    }

    private void kill(int index) throws Exception {
      kills++;
      try (Apart instance = apart.remove(index)) {
        instance.child.kill();
        restored += instance.child.restored();
      }
    }

    /** All of them, each in its way. */
    void leave() throws Exception {
      while (!apart.isEmpty()) {
        kill(0);
      }
      while (!here.isEmpty()) {
        leave(0);
      }
    }

    @Override
    public void close() throws IOException {
      here.forEach(Application::close);
      for (Apart instance : apart) {
        instance.close();
      }
    }

    @Override
    public String toString() {
      return "%d joins, %d leaves, %d kills, %d records restored by the killed; %s"
          .formatted(joins, leaves, kills, restored, tasks);
    }
  }

  /** An instance in a JVM of its own. */
  private record Apart(Application folder, ChildApplication child) implements AutoCloseable {
    static Apart start(Application application, Map<String, Object> config) throws IOException {
      Application folder = application.instance(config, new Step(() -> {})::processor);
      return new Apart(folder, ChildApplication.start(broker.bootstrapServers(), folder, config));
    }

    @Override
    public void close() throws IOException {
      child.close();
      folder.close();
    }
  }

  /** Tasks that kept their store when they became active or standbys, in this JVM. */
  private static final class Tasks implements StandbyUpdateListener {
    private final AtomicInteger promoted = new AtomicInteger();
    private final AtomicInteger demoted = new AtomicInteger();

    void listenTo(KafkaStreams streams) {
      streams.setStandbyUpdateListener(this);
    }

    /** A store in memory begins its life empty: one that is not has been an active task's. */
    @Override
    public void onUpdateStart(TopicPartition partition, String store, long startingOffset) {
      if (startingOffset > 0) {
        demoted.incrementAndGet();
      }
    }

    @Override
    public void onBatchLoaded(
        TopicPartition partition, String store, TaskId task, long to, long records, long end) {}

    @Override
    public void onUpdateSuspended(
        TopicPartition partition, String store, long offset, long end, SuspendReason reason) {
      if (reason == SuspendReason.PROMOTED) {
        promoted.incrementAndGet();
      }
    }

    @Override
    public String toString() {
      return "%s standbys became active, %s active tasks standbys".formatted(promoted, demoted);
    }
  }

  private static ShaperOptions.Builder patient() {
    return ShaperOptions.builder().target(NEVER).interval(NEVER.multipliedBy(2));
  }

  private static Map<String, Object> config(GroupProtocol protocol, String guarantee) {
    Map<String, Object> config = new HashMap<>();
    config.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol.name);
    config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
    config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
    config.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, SESSION_TIMEOUT_MS);
    if (protocol == GroupProtocol.CLASSIC) {
      config.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, STANDBYS);
      config.put(StreamsConfig.ACCEPTABLE_RECOVERY_LAG_CONFIG, ANY_LAG);
      config.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, SESSION_TIMEOUT_MS);
      config.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, HEARTBEAT_MS);
    }
    return config;
  }
}
