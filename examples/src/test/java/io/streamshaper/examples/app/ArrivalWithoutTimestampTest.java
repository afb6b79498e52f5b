package io.streamshaper.examples.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ArrivalWithoutTimestampTest {
  private static final long PARTITION_TIME = 7;

  @ParameterizedTest
  @ValueSource(longs = {0, 1, 1_700_000_000_000L, Long.MAX_VALUE})
  void aTimestampIsTakenAsItIs(long timestamp) {
    assertThat(extract(timestamp)).isEqualTo(timestamp);
  }

  /** As from a topic of Kafka 0.9. */
  @Test
  void aRecordWithoutOneArrivesNow() {
    long before = System.currentTimeMillis();
    assertThat(extract(ConsumerRecord.NO_TIMESTAMP)).isBetween(before, System.currentTimeMillis());
  }

  private static long extract(long timestamp) {
    ConsumerRecord<Object, Object> record =
        new ConsumerRecord<>(
            "in",
            0,
            0,
            timestamp,
            TimestampType.CREATE_TIME,
            0,
            0,
            "key",
            "value",
            new ProducerRecord<>("in", "value").headers(),
            Optional.empty());
    return new ArrivalWithoutTimestamp().extract(record, PARTITION_TIME);
  }
}
