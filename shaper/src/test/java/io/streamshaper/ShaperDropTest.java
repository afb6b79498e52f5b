package io.streamshaper;

import static io.streamshaper.TestTopology.bytes;
import static io.streamshaper.TestTopology.headers;
import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.TestTopology.Out;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.Serdes;
import org.junit.jupiter.api.Test;

class ShaperDropTest {
  @Test
  void codelDropsFromAStandingQueueAndOnlyThere() {
    try (TestTopology test = TestTopology.of(overloaded().withoutCeiling())) {
      flood(test);
      assertThat(test.droppedByReason().keySet()).containsExactly("codel");
      checkDrops(test);
      test.drain().checkLaw();
    }
  }

  @Test
  void theCeilingDropsWhatCodelIsTooSlowFor() {
    try (TestTopology test = TestTopology.of(overloaded().ceiling(Duration.ofMillis(150)))) {
      flood(test);
      assertThat(test.droppedByReason().keySet()).containsExactlyInAnyOrder("codel", "ceiling");
      checkDrops(test);
      List<Out> late = test.forwarded.stream().filter(out -> sojournMs(out) > 150).toList();
      Out firstDrop = test.dropped.get(0);
      assertThat(late)
          .allSatisfy(out -> assertThat(out.atMs()).isLessThanOrEqualTo(firstDrop.atMs()));
      test.drain().checkLaw();
    }
  }

  @Test
  void aRecordPastItsMaximumAgeIsDroppedWhateverTheLoad() {
    try (TestTopology test = TestTopology.of(patient(10).burst(1).maxAge(Duration.ofSeconds(1)))) {
      test.pipe("k", "stale", test.nowMs() - 1001).pipe("k", "just in time", test.nowMs() - 1000);
      test.pipeMany("k", 0, 100).advance(3000);
      assertThat(test.forwardedValues()).startsWith("just in time").hasSize(11);
      assertThat(test.droppedByReason()).isEqualTo(Map.of("expired", 91L));
      checkDropHeaders(test);
      test.checkLaw();
    }
  }

  @Test
  void aRecordPastItsOwnExpiryIsDropped() {
    Shaper<String, String> expiring =
        shaper(patient(10).burst(1).maxAge(Duration.ofMinutes(1)))
            .expiresAt(
                record ->
                    switch (record.value()) {
                      case "never" -> null;
                      case "long ago" -> Instant.MIN;
                      case "in a long time" -> Instant.MAX;
                      case "soon" -> Instant.ofEpochMilli(record.timestamp() + 50);
                      default -> Instant.ofEpochMilli(record.timestamp() - 1);
                    });
    try (TestTopology test = TestTopology.of(expiring)) {
      for (String value : List.of("never", "long ago", "in a long time", "soon", "past", "never")) {
        test.pipe("k", value);
      }
      test.advance(1000);
      assertThat(test.forwardedValues()).containsExactly("never", "in a long time", "never");
      assertThat(test.droppedValues()).containsExactly("long ago", "soon", "past");
      checkDropHeaders(test);
      test.checkLaw();
    }
  }

  @Test
  void expiredRecordsCostNoToken() {
    try (TestTopology test = TestTopology.of(patient(10).burst(5).maxAge(Duration.ofSeconds(1)))) {
      for (int i = 0; i < 50; i++) {
        test.pipe("k", "stale" + i, test.nowMs() - 2000);
      }
      assertThat(test.dropped).hasSize(50);
      test.pipeMany("k", 0, 6);
      assertThat(test.forwarded).hasSize(5);
      test.checkLaw();
    }
  }

  @Test
  void behindARecordThatWaitsWhatHasExpiredWaitsToo() {
    try (TestTopology test = TestTopology.of(patient(10).burst(1).maxAge(Duration.ofMinutes(5)))) {
      test.pipe("k", "takes the burst").pipe("k", "waits");
      test.pipe("k", "stale", test.nowMs() - 3_600_000);
      assertThat(test.dropped).isEmpty();
      test.drain();
      assertThat(test.forwardedValues()).containsExactly("takes the burst", "waits");
      assertThat(test.dropped).extracting(out -> out.value()).containsExactly("stale");
      test.checkLaw();
    }
  }

  @Test
  void afterALongOutageTheFirstFreshRecordLeavesWithinATick() {
    ShaperOptions.Builder options = patient(100).burst(1).maxAge(Duration.ofMinutes(5));
    try (TestTopology test = TestTopology.of(options)) {
      test.pipe("first", "takes the burst");
      for (int i = 0; i < 10_000; i++) {
        test.pipe("k", "stale" + i, test.nowMs() - 3_600_000);
      }
      assertThat(test.dropped).as("dropped at once, nothing being queued").hasSize(10_000);
      test.pipeMany("k", 0, 100);
      test.step(10);
      assertThat(test.forwardedValues()).containsExactly("takes the burst", "k0");
      checkDropHeaders(test);
      test.drain();
      assertThat(test.forwarded).hasSize(101);
      test.checkLaw();
    }
  }

  @Test
  void overTheLimitTheFattestKeyLosesItsOldest() {
    try (TestTopology test = TestTopology.of(patient(1).burst(1).maxRecords(20).dropBatch(1))) {
      test.pipe("first", "takes the burst").pipe("quiet", "q");
      test.pipeMany("hot", 0, 30);
      assertThat(test.droppedByReason()).isEqualTo(Map.of("overlimit", 11L));
      assertThat(test.droppedValues()).first().isEqualTo("hot0");
      assertThat(test.droppedValues()).last().isEqualTo("hot10");
      checkDropHeaders(test);
      assertThat(test.saved()).isEqualTo(20);
      test.drain().checkLaw();
    }
  }

  @Test
  void theByteLimitHoldsAsTheLimitOfRecordsDoes() {
    try (TestTopology test = TestTopology.of(patient(1).burst(1).maxBytes(10_000).dropBatch(1))) {
      test.pipe("first", "takes the burst").pipe("quiet", "q");
      for (int i = 0; i < 30; i++) {
        test.pipe("hot", "%01000d".formatted(i));
      }
      assertThat(test.dropped)
          .hasSize(21)
          .allSatisfy(out -> assertThat(out.key()).isEqualTo("hot"));
      checkDropHeaders(test);
      test.drain().checkLaw();
    }
  }

  @Test
  void aRecordLargerThanTheLimitIsDroppedWithAReason() {
    try (TestTopology test = TestTopology.of(patient(1).burst(1).maxBytes(1000))) {
      test.pipe("first", "takes the burst").pipe("k", "x".repeat(2000)).pipe("k", "small");
      assertThat(test.droppedByReason()).isEqualTo(Map.of("overlimit", 1L));
      test.drain().checkLaw();
      assertThat(test.forwardedValues()).contains("small");
    }
  }

  @Test
  void theLastRecordOfAKeyIsNeverDroppedForItsDelay() {
    ShaperOptions.Builder options =
        ShaperOptions.builder()
            .rate(1)
            .burst(1)
            .target(Duration.ofMillis(5))
            .interval(Duration.ofMillis(10));
    try (TestTopology test = TestTopology.of(options)) {
      for (int i = 0; i < 60; i++) {
        test.pipe("k" + i, "v", test.nowMs() - 1000);
      }
      test.drain();
      assertThat(test.forwarded).hasSize(60);
      test.pipeMany("hot", 0, 100).drain();
      assertThat(test.forwardedValues()).last().isEqualTo("hot99");
      assertThat(test.dropped).isNotEmpty();
      test.checkLaw();
    }
  }

  @Test
  void aQuietKeyIsNeverJudgedByARecordOfLongAgo() {
    try (TestTopology test = TestTopology.of(overloaded())) {
      for (int i = 0; i < 1000; i++) {
        test.pipeMany("hot" + i, 0, 2);
        if (i % 50 == 0) {
          test.pipe("quiet", "q" + i, test.nowMs() - 500);
        }
        test.advance(10);
      }
      assertThat(test.dropped).allSatisfy(out -> assertThat(out.key()).isNotEqualTo("quiet"));
      test.drain().checkLaw();
    }
  }

  @Test
  void aDroppedRecordKeepsItsKeyValueAndOwnHeaders() {
    try (TestTopology test = TestTopology.of(patient(1).maxAge(Duration.ofSeconds(1)))) {
      Headers own = headers();
      own.add("a", bytes("1"))
          .add("a", null)
          .add(Shaper.REASON_HEADER, bytes("mine"))
          .add("", null);
      test.pipe(bytes("key"), null, own, test.nowMs() - 2000);
      test.pipe(null, bytes("value"), own, test.nowMs() - 3000);
      assertThat(test.dropped).hasSize(2);
      Out ofNoKey = test.dropped.get(1);
      Header flow = ofNoKey.record().headers().lastHeader(Shaper.FLOW_HEADER);
      assertThat(flow.value()).isNull();
      assertThat(ofNoKey.header(Shaper.SOJOURN_HEADER)).isEqualTo("3000");
      assertThat(ofNoKey.header(Shaper.REASON_HEADER)).isEqualTo("expired");
      test.checkLaw();
    }
  }

  @Test
  void theFlowHeaderNamesTheFlowAndNotTheKey() {
    Shaper<String, String> byTenant =
        shaper(patient(1).maxAge(Duration.ofSeconds(1)))
            .flowBy(record -> record.key().length(), Serdes.Integer());
    try (TestTopology test = TestTopology.of(byTenant)) {
      test.pipe("abc", "v", test.nowMs() - 2000);
      Header flow = test.dropped.get(0).record().headers().lastHeader(Shaper.FLOW_HEADER);
      assertThat(flow.value()).containsExactly(0, 0, 0, 3);
      test.checkLaw();
    }
  }

  @Test
  void whatIsNotDroppableIsMarkedAndForwarded() {
    Shaper<String, String> marking = shaper(overloaded()).droppable(record -> false);
    try (TestTopology test = TestTopology.of(marking)) {
      flood(test);
      assertThat(test.dropped).isEmpty();
      assertThat(test.forwarded)
          .filteredOn(out -> out.has(Shaper.MARK_HEADER))
          .isNotEmpty()
          .allSatisfy(out -> assertThat(out.key()).isEqualTo("hot"))
          .allSatisfy(out -> assertThat(out.header(Shaper.MARK_HEADER)).isEqualTo("codel"));
      test.drain().checkLaw();
    }
  }

  @Test
  void whatIsDroppableIsNeverMarked() {
    Shaper<String, String> both =
        shaper(overloaded()).droppable(record -> record.value().endsWith("0"));
    try (TestTopology test = TestTopology.of(both)) {
      flood(test);
      assertThat(test.dropped)
          .isNotEmpty()
          .allSatisfy(out -> assertThat(out.value()).endsWith("0"))
          .allSatisfy(out -> assertThat(out.has(Shaper.MARK_HEADER)).isFalse());
      assertThat(test.forwarded)
          .filteredOn(out -> out.has(Shaper.MARK_HEADER))
          .isNotEmpty()
          .allSatisfy(out -> assertThat(out.value()).doesNotEndWith("0"));
      test.drain().checkLaw();
    }
  }

  @Test
  void expiryAndLimitsSpareNobody() {
    ShaperOptions.Builder options =
        patient(1).burst(1).maxRecords(10).dropBatch(1).maxAge(Duration.ofSeconds(3));
    try (TestTopology test = TestTopology.of(shaper(options).droppable(record -> false))) {
      test.pipeMany("k", 0, 20).advance(10_000);
      assertThat(test.droppedByReason().keySet()).isEqualTo(Set.of("overlimit", "expired"));
      test.checkLaw();
    }
  }

  private static ShaperOptions.Builder overloaded() {
    return ShaperOptions.builder()
        .rate(100)
        .burst(2)
        .target(Duration.ofMillis(100))
        .interval(Duration.ofMillis(1000));
  }

  /** Twice the rate from one key, for six seconds, beside a quiet one. */
  private static void flood(TestTopology test) {
    for (int i = 0; i < 600; i++) {
      test.pipe("hot", "h" + 2 * i).pipe("hot", "h" + (2 * i + 1));
      if (i % 20 == 0) {
        test.pipe("quiet", "q" + i);
      }
      test.advance(10);
    }
  }

  private static void checkDrops(TestTopology test) {
    assertThat(test.dropped).isNotEmpty().allSatisfy(out -> assertThat(out.key()).isEqualTo("hot"));
    assertThat(test.dropped.get(0).header(Shaper.REASON_HEADER)).isEqualTo("codel");
    assertThat(test.dropped.get(0).atMs())
        .isGreaterThanOrEqualTo(TestTopology.START_MS + 100 + 1000);
    checkDropHeaders(test);
  }

  private static void checkDropHeaders(TestTopology test) {
    assertThat(test.dropped)
        .allSatisfy(
            out -> {
              assertThat(out.record().timestamp()).isEqualTo(out.atMs());
              assertThat(out.header(Shaper.FLOW_HEADER)).isEqualTo(out.key());
              assertThat(out.header(Shaper.SOJOURN_HEADER))
                  .isEqualTo(
                      Long.toString(
                          out.atMs() - Long.parseLong(out.header(Shaper.TIMESTAMP_HEADER))));
            });
  }

  private static long sojournMs(Out out) {
    return out.atMs() - out.record().timestamp();
  }
}
