package io.streamshaper.examples;

import io.streamshaper.Shaper;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Bytes;

/**
 * The law, checked against the topics themselves: every record that went in was forwarded, dropped
 * with exactly one reason, is still queued, or was not read yet; in order for each key; none twice.
 * Reads everything that is committed, so it is for demos and tests.
 */
final class Ledger {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  /** The changelog's entries that are not records have shorter keys. */
  private static final int SEQUENCE_BYTES = Long.BYTES;

  private final Map<String, Account> accounts = new TreeMap<>();
  private final List<String> violations = new ArrayList<>();

  /** What became of the records of one key, or of several together. */
  static final class Account {
    private final Set<Long> in = new HashSet<>();
    private final Set<Long> out = new HashSet<>();
    private final Set<Long> lost = new HashSet<>();
    private final Map<String, Long> reasons = new TreeMap<>();
    private long sent;
    private long forwarded;
    private long queued;
    private long unread;
    private long lastForwarded = -1;

    long sent() {
      return sent;
    }

    long forwarded() {
      return forwarded;
    }

    long dropped() {
      return reasons.values().stream().mapToLong(Long::longValue).sum();
    }

    /** Drops by reason. */
    Map<String, Long> reasons() {
      return reasons;
    }

    long queued() {
      return queued;
    }

    long unread() {
      return unread;
    }

    private void add(Account other) {
      sent += other.sent;
      forwarded += other.forwarded;
      queued += other.queued;
      unread += other.unread;
      other.reasons.forEach((reason, count) -> reasons.merge(reason, count, Long::sum));
    }
  }

  private Ledger() {}

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
    Ledger ledger = new Ledger();
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
      each(consumer, in, record -> ledger.sent(record, committed));
      each(consumer, out, ledger::forwarded);
      each(consumer, dropped, ledger::dropped);
      if (changelog != null) {
        Set<Bytes> live = new HashSet<>();
        each(consumer, changelog, record -> collectLive(record, live));
        live.forEach(ledger::queued);
      }
    }
    ledger.balance();
    return ledger;
  }

  /** What was violated, with the first offending records; empty if the law held. */
  List<String> violations() {
    return violations;
  }

  /** The sum over the keys that are asked for. */
  Account total(Predicate<String> keys) {
    Account total = new Account();
    accounts.forEach(
        (key, account) -> {
          if (keys.test(key)) {
            total.add(account);
          }
        });
    return total;
  }

  private void sent(
      ConsumerRecord<byte[], byte[]> record, Map<TopicPartition, Long> committedOffsets) {
    Account account = accountOf(record.key());
    account.sent++;
    account.in.add(Load.numberOf(record.value()));
    TopicPartition partition = new TopicPartition(record.topic(), record.partition());
    if (record.offset() >= committedOffsets.getOrDefault(partition, 0L)) {
      account.unread++;
    }
  }

  private void forwarded(ConsumerRecord<byte[], byte[]> record) {
    Account account = accountOf(record.key());
    long number = Load.numberOf(record.value());
    account.forwarded++;
    if (!account.out.add(number)) {
      violate("%s %d was forwarded twice", record, number);
    } else if (number <= account.lastForwarded) {
      violate("%s %d was forwarded after " + account.lastForwarded, record, number);
    }
    account.lastForwarded = Math.max(number, account.lastForwarded);
  }

  private void dropped(ConsumerRecord<byte[], byte[]> record) {
    Account account = accountOf(record.key());
    long number = Load.numberOf(record.value());
    List<Header> reasons = new ArrayList<>();
    record.headers().headers(Shaper.REASON_HEADER).forEach(reasons::add);
    if (reasons.size() != 1) {
      violate("%s %d was dropped with " + reasons.size() + " reasons", record, number);
      return;
    }
    account.reasons.merge(text(reasons.get(0).value()), 1L, Long::sum);
    if (account.out.contains(number) || !account.lost.add(number)) {
      violate("%s %d was dropped after it had left", record, number);
    }
  }

  private static void collectLive(ConsumerRecord<byte[], byte[]> record, Set<Bytes> liveKeys) {
    if (record.key().length < SEQUENCE_BYTES) {
      return;
    }
    if (record.value() == null) {
      liveKeys.remove(Bytes.wrap(record.key()));
    } else {
      liveKeys.add(Bytes.wrap(record.key()));
    }
  }

  private void queued(Bytes storeKey) {
    byte[] key = storeKey.get();
    accountOf(Arrays.copyOfRange(key, SEQUENCE_BYTES, key.length)).queued++;
  }

  private void balance() {
    accounts.forEach(
        (key, account) -> {
          Set<Long> missing = new HashSet<>(account.in);
          missing.removeAll(account.out);
          missing.removeAll(account.lost);
          if (missing.size() != account.queued + account.unread) {
            violations.add(
                "%s: %d sent, %d forwarded, %d dropped, %d queued, %d not read; first without trace: %s"
                    .formatted(
                        key,
                        account.sent,
                        account.forwarded,
                        account.dropped(),
                        account.queued,
                        account.unread,
                        missing.stream().sorted().limit(5).toList()));
          }
          Set<Long> extra = new HashSet<>(account.out);
          extra.addAll(account.lost);
          extra.removeAll(account.in);
          if (!extra.isEmpty()) {
            violations.add(key + ": came out but never went in: " + extra);
          }
        });
  }

  private void violate(String format, ConsumerRecord<byte[], byte[]> record, long number) {
    violations.add(format.formatted(text(record.key()), number));
  }

  private Account accountOf(byte[] key) {
    return accounts.computeIfAbsent(text(key), name -> new Account());
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static void each(
      KafkaConsumer<byte[], byte[]> consumer,
      String topic,
      Consumer<ConsumerRecord<byte[], byte[]>> action) {
    List<TopicPartition> partitions =
        consumer.partitionsFor(topic, TIMEOUT).stream()
            .map(info -> new TopicPartition(info.topic(), info.partition()))
            .toList();
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    Map<TopicPartition, Long> ends = consumer.endOffsets(partitions, TIMEOUT);
    long deadline = System.nanoTime() + TIMEOUT.toNanos();
    while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("topic " + topic + " could not be read to its end");
      }
      consumer.poll(Duration.ofMillis(100)).forEach(action);
    }
  }
}
