package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.ShaperOptions;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * How long a queue takes to move to an instance that has nothing of it. The promise is 5 s for
 * 100,000 records and 40 s for a million, on two cores that do nothing else; these bounds are twice
 * that, for machines that do.
 */
class RestoreIT {
  private static final Duration NEVER = Duration.ofDays(1);
  private static final Duration BOUND_100_000 = Duration.ofSeconds(10);
  private static final Duration BOUND_MILLION = Duration.ofSeconds(80);

  private static Broker broker;
  private static Admin admin;

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
  @CsvSource({"MEMORY, at_least_once", "ROCKSDB, at_least_once", "MEMORY, exactly_once_v2"})
  void aHundredThousandQueuedRecordsAreServedSoonAfterTheTaskIsAssigned(
      ShaperOptions.Store store, String guarantee) throws Exception {
    Step filling = new Step(() -> {});
    try (Application application = application(guarantee, filling);
        Load load = new Load(broker.bootstrapServers(), application.in(), 20_000, 500, 20)) {
      fill(application, store, load, 100_000);
      assertThat(moveAndDrain(application, guarantee, store, load.sent() - filling.calls()))
          .isLessThan(BOUND_100_000);

      Ledger ledger = application.ledger();
      assertThat(ledger.violations()).isEmpty();
      assertThat(ledger.total(key -> true).forwarded()).isEqualTo(load.sent());
    }
  }

  /** From idle through a million queued records to idle, and what is left of them. */
  @Test
  void aMillionQueuedRecordsAreServedAndThenTheChangelogHoldsNone() throws Exception {
    String guarantee = StreamsConfig.AT_LEAST_ONCE;
    ShaperOptions.Store store = ShaperOptions.Store.MEMORY;
    Step filling = new Step(() -> {});
    try (Application application = application(guarantee, filling);
        Load load = new Load(broker.bootstrapServers(), application.in(), 30_000, 1000, 20)) {
      fill(application, store, load, 1_000_000);
      assertThat(moveAndDrain(application, guarantee, store, load.sent() - filling.calls()))
          .isLessThan(BOUND_MILLION);

      Changelog changelog = changelogOf(application);
      System.out.println(changelog);
      assertThat(changelog.records)
          .as("entries, with tombstones and remainders")
          .isBetween(1_000_000L / 64, 1_000_000L / 10);
      assertThat(changelog.live).as("the position alone").hasSize(1);
    }
  }

  /** Queues so many records, in a folder that nobody will use again. */
  private static void fill(
      Application application, ShaperOptions.Store store, Load load, long records)
      throws Exception {
    application.start(patient(store).rate(1).build());
    while (load.sent() < records) {
      load.run(Duration.ofSeconds(1));
    }
    Patience.await("all is read", () -> application.committed() >= load.sent());
    application.stop();
  }

  /** Returns how long it took another instance from its start to its first record. */
  private static Duration moveAndDrain(
      Application application, String guarantee, ShaperOptions.Store store, long queued)
      throws Exception {
    Restoration restoration = new Restoration();
    AtomicLong firstNanos = new AtomicLong();
    Step step = new Step(() -> firstNanos.compareAndSet(0, System.nanoTime()));
    try (Application other = application.instance(Application.config(guarantee), step::processor)) {
      long startNanos = System.nanoTime(); // before it has even joined its group
      other.start(patient(store).build(), restoration::listenTo);
      Patience.await("the first record is served", () -> firstNanos.get() != 0);
      Patience.await("all is served", () -> step.calls() >= queued);
      long heapBytes = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
      other.stop();
      Duration toFirst = Duration.ofNanos(firstNanos.get() - startNanos);
      System.out.printf(
          "%,d entries restored to %s; of %d ms from start to first record: join %d, restore %d,"
              + " rebuild %d; all served %d ms later; heap %d MB of %d%n",
          restoration.restored,
          store,
          toFirst.toMillis(),
          millis(startNanos, restoration.startNanos),
          millis(restoration.startNanos, restoration.endNanos),
          millis(restoration.endNanos, firstNanos.get()),
          millis(firstNanos.get(), System.nanoTime()),
          heapBytes >> 20,
          Runtime.getRuntime().maxMemory() >> 20);
      assertThat(restoration.restored).as("entries restored").isGreaterThan(queued / 64);
      return toFirst;
    }
  }

  private static long millis(long fromNanos, long toNanos) {
    return Duration.ofNanos(toNanos - fromNanos).toMillis();
  }

  /** When the changelog was read, and how much of it. */
  private static final class Restoration implements StateRestoreListener {
    private volatile long startNanos;
    private volatile long endNanos;
    private volatile long restored;

    void listenTo(KafkaStreams streams) {
      streams.setGlobalStateRestoreListener(this);
    }

    @Override
    public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
      startNanos = System.nanoTime();
    }

    @Override
    public void onBatchRestored(TopicPartition partition, String store, long to, long records) {}

    @Override
    public void onRestoreEnd(TopicPartition partition, String store, long records) {
      endNanos = System.nanoTime();
      restored = records;
    }
  }

  /** All that a changelog ever held, as long as it has not been compacted. */
  private static final class Changelog {
    private final Set<Bytes> live = new HashSet<>();
    private long records;
    private long tombstones;

    void add(ConsumerRecord<byte[], byte[]> change) {
      records++;
      if (change.value() == null) {
        tombstones++;
        live.remove(Bytes.wrap(change.key()));
      } else {
        live.add(Bytes.wrap(change.key()));
      }
    }

    @Override
    public String toString() {
      return "changelog: %,d records, %,d of them tombstones, %d live"
          .formatted(records, tombstones, live.size());
    }
  }

  private static Changelog changelogOf(Application application) throws Exception {
    Changelog changelog = new Changelog();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(
            Map.of(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()),
            new ByteArrayDeserializer(),
            new ByteArrayDeserializer())) {
      List<TopicPartition> partitions =
          List.of(new TopicPartition(application.id() + "-shaper-queue-changelog", 0));
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      long end = consumer.endOffsets(partitions).get(partitions.get(0));
      Patience.await(
          "changelog is read",
          () -> {
            consumer.poll(Duration.ofMillis(100)).forEach(changelog::add);
            return consumer.position(partitions.get(0)) >= end;
          });
    }
    return changelog;
  }

  /** A queue that holds everything, and drops nothing. */
  private static ShaperOptions.Builder patient(ShaperOptions.Store store) {
    return ShaperOptions.builder()
        .store(store)
        .target(NEVER)
        .interval(NEVER.multipliedBy(2))
        .maxRecords(2_000_000)
        .maxBytes(1L << 30);
  }

  private static Application application(String guarantee, Step step) throws Exception {
    return new Application(
        admin, broker.bootstrapServers(), Application.config(guarantee), step::processor);
  }
}
