package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.ShaperOptions;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Drops between real topics: of a broker that looks every second for what is past retention. */
class DropIT {
  private static final Duration MAX_AGE = Duration.ofMinutes(1);

  private static TestBroker broker;
  private static Admin admin;
  private static KafkaProducer<String, byte[]> producer;

  @BeforeAll
  static void startBroker() throws Exception {
    broker =
        TestBroker.start(
            Map.of(
                "log.retention.hours",
                "168",
                "log.retention.check.interval.ms",
                "1000",
                "log.initial.task.delay.ms",
                "1000"));
    admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()));
    producer =
        new KafkaProducer<>(
            Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()),
            new StringSerializer(),
            new ByteArraySerializer());
  }

  @AfterAll
  static void stopBroker() {
    producer.close();
    admin.close();
    broker.close();
  }

  /** Each round would wait for ever if only what is forwarded moved the offsets. */
  @ParameterizedTest
  @ValueSource(strings = {StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2})
  void theOffsetsMoveOnWhileEverythingIsDropped(String guarantee) throws Exception {
    try (Application application = application(guarantee)) {
      application.start(ShaperOptions.builder().rate(100).maxAge(MAX_AGE).build());
      long sent = 0;
      while (sent < 5000) {
        for (int i = 0; i < 500; i++) {
          send(application.in(), sent++, Duration.ofHours(1));
        }
        producer.flush();
        long soFar = sent;
        Patience.await("all is committed", () -> application.committed() == soFar);
      }
      application.stop();

      Ledger ledger = application.ledger();
      assertThat(ledger.violations()).isEmpty();
      Ledger.Account total = ledger.total(key -> true);
      assertThat(total.reasons()).isEqualTo(Map.of("expired", sent));
      assertThat(total.forwarded() + total.queued() + total.unread()).isZero();
    }
  }

  /** Retention is 7 days. Two records beside it show that the broker has looked at every topic. */
  @Test
  void aDroppedRecordThirtyDaysOldIsKeptByItsTopic() throws Exception {
    Duration age = Duration.ofDays(30);
    try (Application application = application(StreamsConfig.AT_LEAST_ONCE)) {
      application.start(
          ShaperOptions.builder().maxAge(MAX_AGE).plausibleAge(age.multipliedBy(2)).build());
      String beside = application.id() + "-beside";
      Application.createTopics(admin, List.of(beside), 1);
      send(application.in(), 0, Duration.ZERO); // keeps the other's segment until it is read
      send(application.in(), 1, age);
      producer.flush();
      Patience.await("it is dropped", () -> end(application.topics().get(2)) > 0);

      for (long i = 0; i < 2; i++) {
        long deleted = i + 1;
        send(beside, i, age);
        producer.flush();
        Patience.await("the other is deleted", () -> begin(beside) == deleted);
      }

      assertThat(begin(application.topics().get(2))).isZero();
      application.stop();
      assertThat(application.ledger().total(key -> true).reasons())
          .isEqualTo(Map.of("expired", 1L));
    }
  }

  private static Application application(String guarantee) throws Exception {
    return new Application(
        admin,
        broker.bootstrapServers(),
        Application.config(guarantee),
        new Step(() -> {})::processor);
  }

  @SuppressWarnings("FutureReturnValueIgnored") // what is missing is noticed
  private static void send(String topic, long number, Duration age) {
    byte[] value = ByteBuffer.allocate(Load.VALUE_BYTES).putLong(number).array();
    long timestampMs = System.currentTimeMillis() - age.toMillis();
    producer.send(new ProducerRecord<>(topic, null, timestampMs, "k", value));
  }

  private static long begin(String topic) throws Exception {
    return offset(topic, OffsetSpec.earliest());
  }

  private static long end(String topic) throws Exception {
    return offset(topic, OffsetSpec.latest());
  }

  private static long offset(String topic, OffsetSpec which) throws Exception {
    TopicPartition partition = new TopicPartition(topic, 0);
    return admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get().offset();
  }
}
