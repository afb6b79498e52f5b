package io.streamshaper;

import static io.streamshaper.TestTopology.START_MS;
import static io.streamshaper.TestTopology.bytes;
import static io.streamshaper.TestTopology.headers;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ShaperStreamTimeTest {
  private static final long YESTERDAY_MS = START_MS - TimeUnit.DAYS.toMillis(1);

  private static ShaperOptions.Builder streamTime() {
    return ShaperOptions.builder().time(ShaperOptions.Time.STREAM);
  }

  @Test
  void aRecordThatAFunctionRefusesDoesNotAdvanceStreamTime() {
    Shaper<String, String> shaper =
        shaper(streamTime().maxAge(Duration.ofMinutes(1)))
            .costBy(record -> record.value().equals("bad") ? 0 : 1);
    Map<String, Object> skip =
        Map.of(
            StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
            LogAndContinueProcessingExceptionHandler.class);
    try (TestTopology test = TestTopology.of(shaper, skip)) {
      test.pipe("a", "first", YESTERDAY_MS);
      test.pipeSkipped("b", "bad", YESTERDAY_MS + TimeUnit.HOURS.toMillis(1));
      test.pipe("a", "second", YESTERDAY_MS + 1);

      assertThat(test.forwardedValues()).containsExactly("first", "second");
    }
  }

  /** Without a cache everything is saved at once: also between two steps of taking a record in. */
  @Test
  void withoutACacheTheSavedPositionIsNeverBeyondAQueuedRecord() {
    Map<String, Object> noCache = Map.of(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    ShaperOptions.Builder options = streamTime().rate(1).burst(1);
    try (TestTopology test = TestTopology.of(shaper(options), noCache)) {
      for (int i = 0; i < 5; i++) {
        test.pipe("a", "a" + i, YESTERDAY_MS + i);
        for (TestRecord<byte[], byte[]> change : test.changes) {
          if (change.key().length < Long.BYTES) {
            long head = ByteBuffer.wrap(change.value(), 1, Long.BYTES).getLong();
            assertThat(test.savedSequences()).as("after %d", i).allMatch(saved -> saved >= head);
          }
        }
      }
      assertThat(test.saved()).isEqualTo(4);
      test.checkLaw();
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4})
  void aReplayGivesTheSameBytes(long seed) {
    List<String> first = replay(seed, 0);
    List<String> again = replay(seed, TimeUnit.HOURS.toMillis(30) + 17);
    assertThat(first).hasSizeGreaterThan(500);
    assertThat(again).isEqualTo(first);
  }

  /** What an hour of yesterday's traffic becomes, in bytes. */
  private static List<String> replay(long seed, long afterMs) {
    Random random = new Random(seed);
    ShaperOptions.Builder options =
        streamTime().rate(50).burst(5).maxAge(Duration.ofSeconds(5)).maxRecords(150);
    Shaper<String, String> shaper = shaper(options).droppable(r -> !r.value().startsWith("keep"));
    try (TestTopology test = TestTopology.of(shaper)) {
      test.step(afterMs + 1);
      long timeMs = YESTERDAY_MS;
      for (int i = 0; i < 1500; i++) {
        timeMs += random.nextInt(i % 500 < 250 ? 20 : 60);
        String key = random.nextInt(3) == 0 ? "quiet" + random.nextInt(5) : "hot";
        Headers headers = headers();
        headers.add("n", bytes("" + i));
        String value = (random.nextInt(4) == 0 ? "keep" : "v") + i;
        test.pipe(bytes(key), bytes(value), headers, timeMs - random.nextInt(200));
        if (random.nextInt(10) == 0) {
          test.step(1 + random.nextInt(50));
        }
      }
      List<String> raw = new ArrayList<>();
      for (List<TestTopology.Out> topic : List.of(test.forwarded, test.dropped)) {
        topic.forEach(
            out ->
                raw.add(
                    HexFormat.of().formatHex(out.record().key())
                        + HexFormat.of().formatHex(out.record().value())
                        + out.record().timestamp()
                        + Arrays.toString(out.record().headers().toArray())));
      }
      assertThat(test.droppedByReason().keySet()).contains("codel", "ceiling");
      test.checkLaw();
      return raw;
    }
  }

  @Test
  void yesterdaysRecordsAreNotStale() {
    try (TestTopology test =
        TestTopology.of(streamTime().rate(100).maxAge(Duration.ofSeconds(1)))) {
      for (int i = 0; i < 500; i++) {
        test.pipe("k" + i % 5, "v" + i, YESTERDAY_MS + 20L * i);
      }
      assertThat(test.dropped).isEmpty();
      assertThat(test.forwarded).hasSize(500);
      test.checkLaw();
    }
  }

  @Test
  void recordsLeaveOnlyAsStreamTimeAdvances() {
    try (TestTopology test = TestTopology.of(streamTime().rate(100).burst(5))) {
      for (int i = 0; i < 20; i++) {
        test.pipe("k" + i, "v" + i, YESTERDAY_MS);
      }
      assertThat(test.forwarded).hasSize(5);
      test.advance(5000);
      assertThat(test.forwarded).hasSize(5);
      test.pipe("k", "older", YESTERDAY_MS - 100);
      assertThat(test.forwarded).hasSize(5);
      test.pipe("k", "newer", YESTERDAY_MS + 30);
      assertThat(test.forwarded).hasSize(8);
      test.checkLaw();
    }
  }

  @Test
  void aFarFutureRecordDoesNotAdvanceStreamTimeForOthers() {
    ShaperOptions.Builder options = streamTime().rate(100).burst(2).maxAge(Duration.ofMinutes(1));
    try (TestTopology test = TestTopology.of(options)) {
      test.pipe("a", "1", YESTERDAY_MS).pipe("a", "2", YESTERDAY_MS).pipe("a", "3", YESTERDAY_MS);
      for (long timestampMs :
          new long[] {Long.MAX_VALUE, START_MS * 1000, START_MS + TimeUnit.DAYS.toMillis(8)}) {
        test.pipe("future", "f" + timestampMs, timestampMs);
      }
      assertThat(test.forwarded).hasSize(2);
      test.pipe("a", "4", YESTERDAY_MS + 100);
      assertThat(test.forwarded).hasSize(4);
      assertThat(test.dropped).isEmpty();
      test.checkLaw();
    }
  }

  @Test
  void anAgeThatIsImplausibleToStreamTimeIsAnArrivalNow() {
    ShaperOptions.Builder options = streamTime().rate(100).burst(50).maxAge(Duration.ofMinutes(1));
    try (TestTopology test = TestTopology.of(options)) {
      test.pipe("a", "1", YESTERDAY_MS);
      test.pipe("a", "seconds", YESTERDAY_MS / 1000).pipe("a", "zero", 0);
      test.pipe("a", "stale", YESTERDAY_MS - 60_001);
      assertThat(test.forwardedValues()).containsExactly("1", "seconds", "zero");
      assertThat(test.droppedValues()).containsExactly("stale");
      assertThat(test.dropped.get(0).record().timestamp()).isEqualTo(YESTERDAY_MS);
      test.checkLaw();
    }
  }

  @Test
  void zeroIsATimeAsAnyOther() {
    try (TestTopology test = TestTopology.of(streamTime().rate(1).burst(1))) {
      test.pipe("a", "0", 0).pipe("a", "1", 0).pipe("a", "2", 999);
      assertThat(test.forwarded).hasSize(1);
      test.pipe("a", "3", 1000);
      assertThat(test.forwarded).hasSize(2);
      test.checkLaw();
    }
  }

  @Test
  void withoutARateRecordsPassAtOnceHoweverOld() {
    try (TestTopology test = TestTopology.of(streamTime())) {
      for (int i = 0; i < 100; i++) {
        test.pipe("k" + i % 3, "v" + i, YESTERDAY_MS + 50L * (i % 10));
        assertThat(test.forwarded).hasSize(i + 1);
      }
      test.checkLaw();
    }
  }
}
