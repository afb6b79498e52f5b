package io.streamshaper;

import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.common.serialization.Serdes;
import org.junit.jupiter.api.Test;

class ShaperFairnessTest {
  @Test
  void aQuietKeyOvertakesAHotOne() {
    try (TestTopology test = TestTopology.of(patient(100).burst(5))) {
      test.pipeMany("hot", 0, 1000).pipe("quiet", "q");
      int before = test.forwarded.size();
      test.advance(50);
      assertThat(before).isEqualTo(5);
      assertThat(test.forwardedKeys().subList(before, before + 2)).contains("quiet");
      test.drain().checkLaw();
    }
  }

  @Test
  void aQuietKeyThatComesAgainAndAgainNeverWaitsForTheHotOne() {
    try (TestTopology test = TestTopology.of(patient(100).burst(1))) {
      test.pipeMany("hot", 0, 500);
      for (int i = 0; i < 20; i++) {
        test.pipe("quiet", "q" + i).advance(100);
      }
      List<Long> delays =
          test.forwarded.stream()
              .filter(out -> out.key().equals("quiet"))
              .map(out -> out.atMs() - out.record().timestamp())
              .toList();
      assertThat(delays).hasSize(20).allSatisfy(delay -> assertThat(delay).isLessThanOrEqualTo(20));
      test.checkLaw();
    }
  }

  @Test
  void equalKeysShareEquallyEvenAtOneRecordATick() {
    try (TestTopology test = TestTopology.of(patient(100).burst(1))) {
      for (int i = 0; i < 200; i++) {
        test.pipe("a", "a" + i).pipe("b", "b" + i).pipe("c", "c" + i);
      }
      test.advance(3000);
      for (String key : List.of("a", "b", "c")) {
        assertThat(Collections.frequency(test.forwardedKeys(), key)).isBetween(99, 102);
      }
      test.checkLaw();
    }
  }

  @Test
  void weightsOfThreeToOneShareThreeToOne() {
    Shaper<String, String> weighted =
        shaper(patient(1000).burst(10))
            .flowBy(record -> record.key(), Serdes.String(), flow -> flow.equals("big") ? 3 : 1);
    try (TestTopology test = TestTopology.of(weighted)) {
      for (int i = 0; i < 600; i++) {
        test.pipe("big", "b" + i).pipe("small", "s" + i);
      }
      test.advance(400);
      assertThat(test.forwarded).hasSizeBetween(409, 410);
      assertThat(Collections.frequency(test.forwardedKeys(), "big")).isBetween(305, 312);
      test.drain().checkLaw();
    }
  }

  @Test
  void aClassifierDecidesWhoSharesWithWhom() {
    Shaper<String, String> byTenant =
        shaper(patient(100).burst(1))
            .flowBy(record -> record.key().substring(0, 1), Serdes.String());
    try (TestTopology test = TestTopology.of(byTenant)) {
      for (int i = 0; i < 100; i++) {
        test.pipe("a" + i, "x").pipe("b", "y" + i);
      }
      test.advance(1000);
      long ofB = Collections.frequency(test.forwardedKeys(), "b");
      assertThat(ofB).as("many keys of one tenant are one flow").isBetween(49L, 52L);
      test.drain().checkLaw();
    }
  }

  @Test
  void aNullFlowIsAFlowAsAnyOther() {
    Shaper<String, String> byTenant =
        shaper(patient(100).burst(1))
            .flowBy(
                record -> record.key().startsWith("n") ? null : record.key(),
                Serdes.String(),
                flow -> flow.length());
    try (TestTopology test = TestTopology.of(byTenant)) {
      for (int i = 0; i < 100; i++) {
        test.pipe("n" + i, "x").pipe("b", "y" + i);
      }
      test.advance(1000);
      assertThat(Collections.frequency(test.forwardedKeys(), "b")).isBetween(49, 52);
      test.drain().checkLaw();
    }
  }

  @Test
  void withoutARateFreshRecordsPassAtOnce() {
    try (TestTopology test = TestTopology.of(ShaperOptions.builder())) {
      for (int i = 0; i < 100; i++) {
        test.pipe("k" + i % 7, "v" + i, test.nowMs() - i % 21);
        assertThat(test.forwarded).hasSize(i + 1);
      }
      assertThat(test.puts()).isZero();
      test.checkLaw();
    }
  }

  @Test
  void withoutARateLateRecordsAreReadAheadAndServedAtATick() {
    try (TestTopology test = TestTopology.of(ShaperOptions.builder())) {
      test.advance(100).pipe("warm", "up");
      for (int i = 0; i < 100; i++) {
        test.pipe("hot", "h" + i, test.nowMs() - 90);
      }
      test.pipe("quiet", "q", test.nowMs() - 90);
      assertThat(test.forwardedValues()).containsExactly("up");
      test.step(10);
      assertThat(test.forwarded).hasSize(102);
      assertThat(test.forwardedKeys().subList(1, 3)).contains("quiet");
      test.checkLaw();
    }
  }

  @Test
  void theClockAloneDrivesTheRestOut() {
    for (ShaperOptions.Builder options :
        List.of(ShaperOptions.builder(), ShaperOptions.builder().rate(10).burst(1))) {
      try (TestTopology test =
          TestTopology.of(options.target(Duration.ofSeconds(1)).interval(Duration.ofSeconds(10)))) {
        test.advance(1000);
        for (int i = 0; i < 10; i++) {
          test.pipe("k" + i % 3, "v" + i, test.nowMs() - 600);
        }
        test.advance(1000);
        assertThat(test.forwarded).hasSize(10);
        test.checkLaw();
      }
    }
  }
}
