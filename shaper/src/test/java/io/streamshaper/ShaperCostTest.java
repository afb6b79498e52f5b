package io.streamshaper;

import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static io.streamshaper.TestTopology.topology;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.Test;

/** What a record costs beyond the decision, counted. */
class ShaperCostTest {
  private static final int RECORDS = 100;

  private final Counter keys = new Counter();
  private final Counter values = new Counter();

  @Test
  void ofARecordThatPassesNothingIsSerialized() {
    try (TestTopology test = run(patient(1e6))) {
      assertThat(test.forwarded).hasSize(RECORDS);
      keys.assertCounts(0, 0);
      values.assertCounts(0, 0);
      assertThat(test.changes).isEmpty();
    }
  }

  @Test
  void ofARecordThatQueuesEachPartIsSerializedOnceAndDeserializedOnce() {
    try (TestTopology test = run(patient(1000).burst(1))) {
      test.drain();
      assertThat(test.forwarded).hasSize(RECORDS);
      keys.assertCounts(RECORDS - 1, RECORDS - 1);
      values.assertCounts(RECORDS - 1, RECORDS - 1);
    }
  }

  @Test
  void ofARecordThatIsDroppedEachPartIsSerializedOnceAndDeserializedOnce() {
    try (TestTopology test = run(patient(1).burst(1).maxRecords(1).dropBatch(1))) {
      assertThat(test.dropped).hasSize(RECORDS - 2);
      keys.assertCounts(RECORDS - 1, RECORDS - 2);
      values.assertCounts(RECORDS - 1, RECORDS - 2);
    }
  }

  private TestTopology run(ShaperOptions.Builder options) {
    Serde<String> strings = Serdes.String();
    Shaper<String, String> shaper = shaper(options).serdes(keys.serde(), values.serde());
    TestTopology test =
        TestTopology.of(
            topology(shaper, strings, strings),
            Map.of(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, Integer.MAX_VALUE));
    IntStream.range(0, RECORDS).forEach(i -> test.pipe("k" + i % 10, "v" + i));
    return test;
  }

  private static final class Counter {
    private int serialized;
    private int deserialized;

    Serde<String> serde() {
      StringSerializer serializer = new StringSerializer();
      StringDeserializer deserializer = new StringDeserializer();
      return Serdes.serdeFrom(
          (topic, data) -> {
            serialized++;
            return serializer.serialize(topic, data);
          },
          (topic, data) -> {
            deserialized++;
            return deserializer.deserialize(topic, data);
          });
    }

    void assertCounts(int expectedSerialized, int expectedDeserialized) {
      assertThat(serialized).as("serialized").isEqualTo(expectedSerialized);
      assertThat(deserialized).as("deserialized").isEqualTo(expectedDeserialized);
    }
  }
}
