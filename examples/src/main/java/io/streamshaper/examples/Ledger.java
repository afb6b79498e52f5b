package io.streamshaper.examples;

import io.streamshaper.Shaper;
import io.streamshaper.examples.History.Entry;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The law, checked against the topics themselves: every record that went in was forwarded, dropped
 * with exactly one reason, is still queued, or was not read yet; in order for each key; none twice.
 * Reads everything that is committed, so it is for demos and tests.
 */
final class Ledger {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  /** What is stored of a {@link Load}'s record ends with its value and this. */
  private static final int CHECKSUM_BYTES = Integer.BYTES;

  private final Admin admin;
  private final KafkaConsumer<byte[], byte[]> consumer;
  private final Map<String, History> histories = new TreeMap<>();

  /**
   * What became of the records of some keys.
   *
   * @param reasons drops by reason
   * @param repeated forwarded or dropped, and not for the first time
   */
  record Account(
      long sent,
      long forwarded,
      long dropped,
      Map<String, Long> reasons,
      long queued,
      long unread,
      long repeated) {}

  private Ledger(Admin admin, KafkaConsumer<byte[], byte[]> consumer) {
    this.admin = admin;
    this.consumer = consumer;
  }

  /**
   * Reads the topics of an application that has stopped.
   *
   * @param changelog of the shaper's queue; null if there is no shaper
   */
  static Ledger read(
      Admin admin,
      String bootstrapServers,
      String applicationId,
      String in,
      String out,
      String dropped,
      String changelog)
      throws InterruptedException, ExecutionException {
    Map<TopicPartition, Long> committed = new HashMap<>();
    admin
        .listConsumerGroupOffsets(applicationId)
        .partitionsToOffsetAndMetadata()
        .get()
        .forEach((partition, offset) -> committed.put(partition, offset.offset()));
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(
            Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG,
                bootstrapServers,
                ConsumerConfig.ISOLATION_LEVEL_CONFIG,
                "read_committed"),
            new ByteArrayDeserializer(),
            new ByteArrayDeserializer())) {
      Ledger ledger = new Ledger(admin, consumer);
      ledger.each(in, record -> ledger.sent(record, committed));
      ledger.each(out, record -> ledger.add(record, History::forwarded));
      ledger.each(dropped, record -> ledger.add(record, History::dropped));
      if (changelog != null) {
        ledger.readQueue(changelog);
      }
      return ledger;
    }
  }

  /** Where exactly-once does not hold; empty if it does. */
  List<String> violations() {
    return violations(Guarantee.EXACTLY_ONCE);
  }

  /** Where some guarantees do not hold: of each the first key, with its first offending records. */
  List<String> violations(Set<Guarantee> guarantees) {
    return guarantees.stream().sorted().map(this::violation).filter(Objects::nonNull).toList();
  }

  /** The sum over the keys that are asked for. */
  Account total(Predicate<String> keys) {
    List<History> some =
        histories.values().stream().filter(history -> keys.test(history.key())).toList();
    return new Account(
        count(some, History::sent),
        count(some, History::forwarded),
        count(some, History::dropped),
        some.stream()
            .flatMap(history -> history.dropped().stream())
            .flatMap(entry -> entry.reasons().stream())
            .collect(Collectors.groupingBy(reason -> reason, TreeMap::new, Collectors.counting())),
        count(some, History::queued),
        count(some, History::unread),
        some.stream().mapToLong(History::repeated).sum());
  }

  /** How often a key went back to an earlier record, at most. */
  long replays() {
    return histories.values().stream().mapToLong(History::replays).max().orElse(0);
  }

  private static long count(List<History> histories, Function<History, List<Entry>> list) {
    return histories.stream().mapToLong(history -> list.apply(history).size()).sum();
  }

  private String violation(Guarantee guarantee) {
    for (History history : histories.values()) {
      var offender = guarantee.offender(history);
      if (offender.isPresent()) {
        return guarantee + " violated: " + history.around(offender.getAsLong());
      }
    }
    return null;
  }

  private void sent(ConsumerRecord<byte[], byte[]> record, Map<TopicPartition, Long> committed) {
    add(record, History::sent);
    TopicPartition partition = new TopicPartition(record.topic(), record.partition());
    if (record.offset() >= committed.getOrDefault(partition, 0L)) {
      add(record, History::unread);
    }
  }

  private void add(ConsumerRecord<byte[], byte[]> record, Function<History, List<Entry>> list) {
    add(record.key(), Load.numberOf(record.value()), record, list);
  }

  private void add(
      byte[] key,
      long number,
      ConsumerRecord<byte[], byte[]> record,
      Function<History, List<Entry>> list) {
    History history = histories.computeIfAbsent(text(key), History::new);
    list.apply(history)
        .add(new Entry(number, record.partition(), record.offset(), reasonsOf(record)));
  }

  private static List<String> reasonsOf(ConsumerRecord<byte[], byte[]> record) {
    Iterable<Header> reasons = record.headers().headers(Shaper.REASON_HEADER);
    return StreamSupport.stream(reasons.spliterator(), false).map(h -> text(h.value())).toList();
  }

  private void readQueue(String changelog) throws InterruptedException, ExecutionException {
    QueueChangelog queue = new QueueChangelog();
    each(changelog, queue::add);
    queue.each(this::addQueued);
  }

  private void addQueued(ConsumerRecord<byte[], byte[]> entry, byte[] flow, byte[] stored) {
    int end = stored.length - CHECKSUM_BYTES;
    byte[] value = Arrays.copyOfRange(stored, end - Load.VALUE_BYTES, end);
    add(flow, Load.numberOf(value), entry, History::queued);
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private void each(String topic, Consumer<ConsumerRecord<byte[], byte[]>> action)
      throws InterruptedException, ExecutionException {
    List<TopicPartition> partitions =
        consumer.partitionsFor(topic, TIMEOUT).stream()
            .map(info -> new TopicPartition(info.topic(), info.partition()))
            .toList();
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    Map<TopicPartition, Long> ends = ends(partitions);
    long deadline = System.nanoTime() + TIMEOUT.toNanos();
    while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("topic " + topic + " could not be read to its end");
      }
      consumer.poll(Duration.ofMillis(100)).forEach(action);
    }
  }

  /** With what is not committed: a transaction of a killed instance hides all behind it. */
  private Map<TopicPartition, Long> ends(List<TopicPartition> partitions)
      throws InterruptedException, ExecutionException {
    Map<TopicPartition, Long> ends = new HashMap<>();
    admin
        .listOffsets(
            partitions.stream()
                .collect(Collectors.toMap(partition -> partition, p -> OffsetSpec.latest())),
            new ListOffsetsOptions(IsolationLevel.READ_UNCOMMITTED))
        .all()
        .get()
        .forEach((partition, offset) -> ends.put(partition, offset.offset()));
    return ends;
  }
}
