package io.streamshaper;

import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.Random;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ShaperRateTest {
  private static final double ROUNDING = 1e-3;

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  void noWindowHasMoreThanTheRateAndTheBurst(long seed) {
    Random random = new Random(seed);
    try (TestTopology test = TestTopology.of(patient(200).burst(20))) {
      for (int i = 0; i < 200; i++) {
        String key = "k" + random.nextInt(5);
        test.pipeMany(key + i, 0, random.nextInt(10) == 0 ? 60 : random.nextInt(4));
        test.step(1 + random.nextInt(random.nextInt(20) == 0 ? 1000 : 40));
      }
      checkEveryWindow(test, 200, 20);
      test.drain();
      checkEveryWindow(test, 200, 20);
      test.checkLaw();
    }
  }

  @Test
  void lateAndIrregularTicksDoNotChangeTheRate() {
    try (TestTopology test = TestTopology.of(patient(1000).burst(60))) {
      test.pipeMany("k", 0, 6000);
      long startMs = test.nowMs();
      for (int i = 0; i < 50; i++) {
        for (long ms : new long[] {10, 35, 1, 54}) {
          test.step(ms);
          long inTimeMs = test.nowMs() - startMs;
          assertThat(test.forwarded.size())
              .isBetween((int) (60 + inTimeMs - 1), (int) (60 + inTimeMs));
        }
      }
      test.checkLaw();
    }
  }

  @Test
  void theFirstSecondHasNoMoreThanTheRateAndTheBurst() {
    try (TestTopology test = TestTopology.of(patient(1000).burst(50))) {
      test.pipeMany("k", 0, 4000).advance(1000);
      assertThat(test.forwarded.size()).isBetween(1049, 1050);
      test.advance(2000);
      assertThat(test.forwarded.size()).isBetween(3049, 3050);
      test.checkLaw();
    }
  }

  @Test
  void aQuietGapSavesUpNoMoreThanOneBurstAndStarvesNobody() {
    try (TestTopology test = TestTopology.of(patient(100).burst(10))) {
      test.pipeMany("k", 0, 30).advance(60_000).pipeMany("k", 30, 400);
      assertThat(test.forwarded).hasSize(30 + 10);
      for (int i = 1; i <= 30; i++) {
        test.advance(100);
        assertThat(test.forwarded.size()).isBetween(40 + 10 * i - 1, 40 + 10 * i);
      }
      checkEveryWindow(test, 100, 10);
      test.drain().checkLaw();
    }
  }

  @Test
  void theBurstThatIsNotSetLastsFromOneTickToTheNext() {
    for (Map.Entry<Long, Integer> burst : Map.of(5L, 50, 100L, 200).entrySet()) {
      Map<String, Object> config = Map.of(StreamsConfig.POLL_MS_CONFIG, burst.getKey());
      try (TestTopology test = TestTopology.of(shaper(patient(1000)), config)) {
        test.pipeMany("k", 0, 300);
        assertThat(test.forwarded).hasSize(burst.getValue());
        test.drain().checkLaw();
      }
    }
  }

  @Test
  void aRateBelowOneRecordASecondStillForwards() {
    try (TestTopology test = TestTopology.of(patient(0.5))) {
      test.pipeMany("k", 0, 4).advance(5990);
      assertThat(test.forwarded).hasSize(3);
      test.advance(10);
      assertThat(test.forwarded).hasSize(4);
      test.checkLaw();
    }
  }

  @Test
  void bytesAreShapedInBytesASecond() {
    ShaperOptions.Builder options =
        patient(1000).burst(100).cost(ShaperOptions.Cost.BYTES).quantum(100);
    try (TestTopology test = TestTopology.of(options)) {
      for (int i = 0; i < 300; i++) {
        test.pipe("abcd", "%096d".formatted(i));
      }
      test.advance(10_000);
      assertThat(test.forwarded.size()).isBetween(100, 102);
      test.checkLaw();
    }
  }

  @Test
  void aKeyOfLargeRecordsGetsNoMoreBytesThanOneOfSmallOnes() {
    ShaperOptions.Builder options =
        patient(10_000).burst(1000).cost(ShaperOptions.Cost.BYTES).quantum(100);
    try (TestTopology test = TestTopology.of(options)) {
      for (int i = 0; i < 1000; i++) {
        test.pipe("small", "%095d".formatted(i));
      }
      for (int i = 0; i < 100; i++) {
        test.pipe("large", "%0995d".formatted(i));
      }
      int before = test.forwarded.size();
      test.advance(10_000);
      long small = bytesOf(test, "small", before);
      long large = bytesOf(test, "large", before);
      assertThat(small + large).isBetween(98_000L, 102_000L);
      assertThat(Math.abs(small - large)).isLessThanOrEqualTo(2 * 1000 + 100);
      test.checkLaw();
    }
  }

  @Test
  void aCostBeyondTheBurstIsPaidBackBeforeAnythingElseLeaves() {
    Shaper<String, String> costly =
        shaper(patient(100).burst(1)).costBy(record -> record.value().length());
    try (TestTopology test = TestTopology.of(costly)) {
      test.pipe("k", "x".repeat(200)).pipe("k", "y").pipe("other", "z");
      test.advance(1990);
      assertThat(test.forwarded).hasSize(1);
      test.advance(30);
      assertThat(test.forwarded).hasSize(3);
      test.checkLaw();
    }
  }

  private static long bytesOf(TestTopology test, String key, int from) {
    return test.forwarded.stream()
        .skip(from)
        .filter(out -> out.key().equals(key))
        .mapToLong(out -> out.record().key().length + out.record().value().length)
        .sum();
  }

  private static void checkEveryWindow(TestTopology test, double rate, double burst) {
    long[] times = test.forwarded.stream().mapToLong(TestTopology.Out::atMs).toArray();
    for (int from = 0; from < times.length; from++) {
      for (int to = from; to < times.length; to++) {
        double most = burst + rate * (times[to] - times[from]) / 1000;
        if (to - from + 1 > most + ROUNDING) {
          assertThat(to - from + 1)
              .as("records from %s to %s", times[from], times[to])
              .isLessThanOrEqualTo((int) most);
        }
      }
    }
  }
}
