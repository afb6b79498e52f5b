package io.streamshaper;

import static io.streamshaper.TestTopology.START_MS;
import static io.streamshaper.TestTopology.bytes;
import static io.streamshaper.TestTopology.headers;
import static io.streamshaper.TestTopology.patient;
import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The limits are no wish: they hold after every call. */
class ShaperLimitTest {
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

  /** The fattest flow has the most records, and none of its bytes: it makes room for nobody. */
  @ParameterizedTest
  @ValueSource(ints = {1, 64})
  void manySmallRecordsMakeRoomForLargeOnes(int dropBatch) {
    int limit = 1_000_000;
    ShaperOptions.Builder options = patient(1).burst(1).maxBytes(limit).dropBatch(dropBatch);
    Shaper<String, String> shaper =
        TestTopology.shaper(options).metrics(ShaperMetrics.in(registry));
    try (TestTopology test = TestTopology.of(shaper)) {
      test.pipe("first", "takes the burst").pipeMany("small", 0, 3000);
      for (int i = 0; i < 60; i++) {
        test.pipe("large", "x".repeat(100_000) + i);
        test.step(1);
        test.step(9);
        assertThat(registry.get("shaper.queued.bytes").gauge().value())
            .as("bytes queued after %d large records", i + 1)
            .isBetween(1.0, 1.0 * limit);
      }
      test.checkLaw();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 64})
  void aLimitThatARestartLowersHoldsFromTheFirstArrivalOn(int dropBatch) {
    List<String> forwarded = new ArrayList<>();
    List<String> dropped = new ArrayList<>();
    try (RestartableShaper task = new RestartableShaper(books(forwarded, dropped))) {
      task.start(shaper(patient(1).burst(1)), Map.of(), START_MS);
      for (int i = 0; i < 301; i++) {
        pipe(task, "k" + i % 3, "v" + i);
      }
      task.stop();

      ShaperOptions.Builder less = patient(1).burst(1).maxRecords(10).dropBatch(dropBatch);
      task.start(shaper(less), Map.of(), START_MS + 1);
      assertThat(task.stored()).hasSize(300);
      pipe(task, "k", "one more");
      assertThat(task.stored()).hasSizeBetween(1, 10);
      assertThat(forwarded.size() + dropped.size() + task.stored().size()).isEqualTo(302);
    }
  }

  /** A queue is not one large value: however long it is, its changes are small. */
  @Test
  void noChangelogRecordIsLargerThanABlock() {
    try (TestTopology test = TestTopology.of(patient(1).burst(1))) {
      for (int i = 0; i < 5000; i++) {
        test.pipe("key", "%0100d".formatted(i));
      }
      test.checkLaw();
      assertThat(test.changes)
          .hasSizeGreaterThan(4998)
          .allSatisfy(
              change -> assertThat(change.value()).hasSizeLessThanOrEqualTo(Block.MAX_BYTES));
    }
  }

  private static RestartableShaper.Downstream books(List<String> forwarded, List<String> dropped) {
    return new RestartableShaper.Downstream() {
      @Override
      public void forwarded(Record<byte[], byte[]> record) {
        forwarded.add(TestTopology.text(record.value()));
      }

      @Override
      public void dropped(Record<byte[], byte[]> record) {
        dropped.add(TestTopology.text(record.value()));
      }
    };
  }

  private static void pipe(RestartableShaper task, String key, String value) {
    task.pipe(bytes(key), bytes(value), headers(), task.nowMs());
  }

  private static Shaper<byte[], byte[]> shaper(ShaperOptions.Builder options) {
    return Shaper.<byte[], byte[]>named(TestTopology.NAME)
        .serdes(Serdes.ByteArray(), Serdes.ByteArray())
        .options(options.build());
  }
}
