package io.streamshaper;

import static io.streamshaper.TestTopology.START_MS;
import static io.streamshaper.TestTopology.bytes;
import static io.streamshaper.TestTopology.headers;
import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.text;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Facts are stored, policy is recomputed. */
class ShaperRestartTest {
  private final List<String> forwarded = new ArrayList<>();
  private final List<Record<byte[], byte[]>> dropped = new ArrayList<>();
  private final RestartableShaper task =
      new RestartableShaper(
          new RestartableShaper.Downstream() {
            @Override
            public void forwarded(Record<byte[], byte[]> record) {
              forwarded.add(text(record.value()));
            }

            @Override
            public void dropped(Record<byte[], byte[]> record) {
              dropped.add(record);
            }
          });

  @AfterEach
  void close() {
    task.close();
  }

  @Test
  void codelStartsFreshAndTheAgesDoNot() {
    ShaperOptions.Builder options =
        ShaperOptions.builder()
            .rate(100)
            .burst(2)
            .target(Duration.ofMillis(100))
            .interval(Duration.ofMillis(1000));
    start(options, START_MS);
    for (int i = 0; i < 300; i++) {
      pipe("k", "v" + i, START_MS);
    }
    stepFor(1500);
    assertThat(dropped).as("drops before the restart").isNotEmpty();
    dropped.clear();
    pipeMany(300);
    task.stop();

    start(options, task.nowMs() + 5000);
    stepFor(1000);
    assertThat(dropped).as("drops within an interval of the start").isEmpty();
    stepFor(100);
    assertThat(dropped).as("drops after an interval").isNotEmpty();
    assertThat(header(dropped.get(0), Shaper.REASON_HEADER)).isEqualTo("codel");
    assertThat(Long.parseLong(header(dropped.get(0), Shaper.SOJOURN_HEADER)))
        .as("sojourn, the down time included")
        .isGreaterThanOrEqualTo(6000);
  }

  @Test
  void whatHasExpiredMeanwhileLeavesAtOnceAndTheRestInOrder() {
    start(patient(1).burst(1).maxAge(Duration.ofSeconds(10)), START_MS);
    pipe("k", "takes the token", START_MS);
    pipe("k", "old", START_MS);
    pipe("k", "young", START_MS + 9000);
    pipe("k", "younger", START_MS + 9000);
    task.stop();

    start(patient(1).burst(1), START_MS + 10_001); // it is the arrival's maximum age that counts
    stepFor(1100);
    assertThat(dropped).hasSize(1);
    assertThat(text(dropped.get(0).value())).isEqualTo("old");
    assertThat(forwarded).containsExactly("takes the token", "young", "younger");
  }

  @Test
  void streamTimeGoesOnWhereItWas() {
    ShaperOptions.Builder options =
        patient(1).burst(1).time(ShaperOptions.Time.STREAM).maxAge(Duration.ofSeconds(10));
    long yesterdayMs = START_MS - 86_400_000;
    start(options, START_MS);
    pipe("a", "takes the token", yesterdayMs);
    pipe("a", "queued", yesterdayMs);
    pipe("a", "queued, too", yesterdayMs + 500);
    task.stop();

    start(options.rate(1000).burst(1000), START_MS + 3_600_000);
    stepFor(5000);
    assertThat(forwarded).containsExactly("takes the token");
    pipe("b", "stale", yesterdayMs + 500 - 10_001);
    assertThat(forwarded).containsExactly("takes the token", "queued", "queued, too");
    assertThat(dropped).extracting(record -> text(record.value())).containsExactly("stale");
    assertThat(dropped.get(0).timestamp()).isEqualTo(yesterdayMs + 500);
  }

  private void start(ShaperOptions.Builder options, long startMs) {
    Shaper<byte[], byte[]> shaper =
        Shaper.<byte[], byte[]>named(TestTopology.NAME)
            .serdes(Serdes.ByteArray(), Serdes.ByteArray())
            .options(options.build());
    task.start(shaper, Map.of(), startMs);
  }

  private void pipe(String key, String value, long timestampMs) {
    task.pipe(bytes(key), bytes(value), headers(), timestampMs);
  }

  private void pipeMany(int records) {
    for (int i = 0; i < records; i++) {
      pipe("k", "w" + i, task.nowMs());
    }
  }

  private void stepFor(long ms) {
    for (long left = ms; left > 0; left -= 10) {
      task.step(10);
    }
  }

  private static String header(Record<byte[], byte[]> record, String name) {
    return text(record.headers().lastHeader(name).value());
  }
}
