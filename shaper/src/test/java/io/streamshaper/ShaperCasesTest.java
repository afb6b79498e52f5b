package io.streamshaper;

import static io.streamshaper.TestTopology.DROPPED;
import static io.streamshaper.TestTopology.IN;
import static io.streamshaper.TestTopology.OUT;
import static io.streamshaper.TestTopology.START_MS;
import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.Test;

/** Faults that other people had and no other test shows; the list is in cases/list.txt. */
class ShaperCasesTest {
  @Test
  void whatWaitedInTheLogIsAsOldAsItsTimestampSays() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    Shaper<String, String> shaper =
        shaper(ShaperOptions.builder()).metrics(ShaperMetrics.in(registry));
    try (TestTopology test = TestTopology.of(shaper)) {
      test.step(3000); // the thread was blocked
      for (int i = 0; i < 1000; i++) {
        test.pipe("k" + i % 10, "v" + i, START_MS);
      }
      test.drain();
      assertThat(registry.get("shaper.sojourn").timer().mean(TimeUnit.MILLISECONDS))
          .isGreaterThanOrEqualTo(3000);
      test.checkLaw();
    }
  }

  /** A key that sends one record a second, of 900 units, beside one that sends a hundred of 1. */
  @Test
  void aKeyOfCostlyRecordsIsTheOneThatWaits() {
    Shaper<String, String> shaper =
        shaper(patient(500).burst(10)).costBy(record -> record.key().equals("costly") ? 900 : 1);
    try (TestTopology test = TestTopology.of(shaper)) {
      for (int i = 0; i < 6000; i++) {
        if (i % 100 == 0) {
          test.pipe("costly", "c" + i);
        }
        test.pipe("cheap", "v" + i).step(10);
      }
      assertThat(test.dropped).isEmpty();
      assertThat(Collections.frequency(test.forwardedKeys(), "cheap")).isGreaterThan(5700);
      assertThat(Collections.frequency(test.forwardedKeys(), "costly")).isBetween(24, 30);
      test.checkLaw();
    }
  }

  @Test
  void freshAndStaleInTurnAreEachJudgedForThemselves() {
    try (TestTopology test = TestTopology.of(patient(100).maxAge(Duration.ofMinutes(1)))) {
      for (int i = 0; i < 6000; i++) {
        boolean stale = i % 2 == 0;
        test.pipe(
            "k" + i % 3, (stale ? "stale" : "fresh") + i, test.nowMs() - (stale ? 60_001 : 0));
        test.step(100);
      }
      assertThat(test.forwardedValues()).hasSize(3000).allMatch(v -> v.startsWith("fresh"));
      assertThat(test.droppedValues()).hasSize(3000).allMatch(v -> v.startsWith("stale"));
      test.checkLaw();
    }
  }

  /** It is never forwarded; until its turn it is queued, as the order of its key demands. */
  @Test
  void whatExpiresInTheMiddleOfAQueueLeavesWhenItIsItsTurn() {
    Map<String, Long> lifeMs = Map.of("long", 600_000L, "short", 1000L);
    Shaper<String, String> shaper =
        shaper(patient(0.1).burst(1))
            .expiresAt(
                record ->
                    lifeMs.containsKey(record.value())
                        ? Instant.ofEpochMilli(START_MS + lifeMs.get(record.value()))
                        : null);
    try (TestTopology test = TestTopology.of(shaper)) {
      test.pipe("k", "first").pipe("k", "long").pipe("k", "short").pipe("k", "last");
      test.advance(9000);
      assertThat(test.dropped).isEmpty();
      test.advance(1000);
      assertThat(test.forwardedValues()).containsExactly("first", "long");
      test.advance(10_000);
      assertThat(test.forwardedValues()).containsExactly("first", "long", "last");
      assertThat(test.droppedValues()).containsExactly("short");
      test.checkLaw();
    }
  }

  /** Kafka Streams has no such records: an extractor's is skipped, a step's is refused. */
  @Test
  void aTimestampBelowZeroNeverReachesTheShaper() {
    assertThatThrownBy(() -> new Record<>("k", "v", -1)).isInstanceOf(StreamsException.class);
    StreamsBuilder builder = new StreamsBuilder();
    Consumed<String, String> extracted =
        Consumed.with(Serdes.String(), Serdes.String())
            .withTimestampExtractor(
                (record, partitionMs) -> "bad".equals(record.value()) ? -1 : record.timestamp());
    Shaped<String, String> shaped =
        shaper(patient(100).burst(1)).shape(builder.stream(IN, extracted));
    shaped.forwarded().to(OUT, Produced.with(Serdes.String(), Serdes.String()));
    shaped.dropped().to(DROPPED, Produced.with(Serdes.String(), Serdes.String()));
    try (TestTopology test = TestTopology.of(builder.build(), Map.of())) {
      for (int i = 0; i < 20; i++) {
        test.pipe("k", "v" + i).pipeSkipped("k", "bad", test.nowMs());
      }
      test.drain();
      assertThat(test.forwarded).hasSize(20);
      test.checkLaw();
    }
  }

  /** Up to Kafka 4.3.1 its punctuation by stream time can hang a thread. */
  @Test
  void nothingIsScheduledByStreamTime() {
    ArchRuleDefinition.noClasses()
        .should()
        .accessField(PunctuationType.class, PunctuationType.STREAM_TIME.name())
        .check(
            new ClassFileImporter()
                .withImportOptions(List.of(new ImportOption.DoNotIncludeTests()))
                .importPackages("io.streamshaper"));
  }
}
