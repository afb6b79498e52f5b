package io.streamshaper.examples;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * What {@link Ledger} checks, for millions of records: none twice, none overtaken by one of its
 * key. It remembers a bit a record, so it can tell that the law is broken, not where.
 */
final class Tally {
  private static final Duration TIMEOUT = Duration.ofMinutes(2);

  private final Admin admin;
  private final String bootstrapServers;
  private final Function<String, String> space;
  private final Map<String, BitSet> seen = new HashMap<>();
  private long twice;
  private long overtaken;

  /**
   * @param space the keys whose records are numbered together
   */
  Tally(Admin admin, String bootstrapServers, Function<String, String> space) {
    this.admin = admin;
    this.bootstrapServers = bootstrapServers;
    this.space = space;
  }

  /** Counts the records of a topic of one partition. */
  long count(String topic) throws InterruptedException, ExecutionException {
    long[] records = {0};
    Map<String, Long> last = new HashMap<>();
    each(
        topic,
        record -> {
          records[0]++;
          add(new String(record.key(), StandardCharsets.UTF_8), record, last);
        });
    return records[0];
  }

  /** Counts the records that a changelog still holds, and nothing that is stored beside them. */
  long live(String changelog) throws InterruptedException, ExecutionException {
    QueueChangelog queue = new QueueChangelog();
    each(changelog, queue::add);
    return queue.count();
  }

  List<String> violations() {
    List<String> violations = new ArrayList<>();
    if (twice > 0) {
      violations.add("records that came out twice must be none, were " + twice);
    }
    if (overtaken > 0) {
      violations.add("records that one of their key overtook must be none, were " + overtaken);
    }
    return violations;
  }

  void add(String key, long number, Map<String, Long> last) {
    BitSet numbers = seen.computeIfAbsent(space.apply(key), unknown -> new BitSet());
    if (numbers.get((int) number)) {
      twice++;
    }
    numbers.set((int) number);
    Long before = last.put(key, number);
    if (before != null && before > number) {
      overtaken++;
    }
  }

  private void add(String key, ConsumerRecord<byte[], byte[]> record, Map<String, Long> last) {
    add(key, Load.numberOf(record.value()), last);
  }

  private void each(String topic, Consumer<ConsumerRecord<byte[], byte[]>> action)
      throws InterruptedException, ExecutionException {
    TopicPartition partition = new TopicPartition(topic, 0);
    // With the end of a last transaction, which a reader of what is committed steps over.
    long end =
        admin
            .listOffsets(
                Map.of(partition, OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_UNCOMMITTED))
            .partitionResult(partition)
            .get()
            .offset();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(
            Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG,
                bootstrapServers,
                ConsumerConfig.ISOLATION_LEVEL_CONFIG,
                "read_committed"),
            new ByteArrayDeserializer(),
            new ByteArrayDeserializer())) {
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      long deadline = System.nanoTime() + TIMEOUT.toNanos();
      while (consumer.position(partition) < end) {
        if (System.nanoTime() > deadline) {
          throw new IllegalStateException("topic " + topic + " could not be read to its end");
        }
        consumer.poll(Duration.ofMillis(100)).forEach(action);
      }
    }
  }
}
