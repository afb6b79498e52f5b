package io.streamshaper;

import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class ShaperFunctionsTest {
  private static final Map<String, Object> CONTINUE =
      Map.of(
          StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
          LogAndContinueProcessingExceptionHandler.class);

  private static final String BAD = "bad";

  /** Everything of the user's that is called on a record's arrival. */
  private enum Function {
    CLASSIFIER {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.flowBy(record -> throwIfBad(record).key(), Serdes.String());
      }
    },
    FLOW_SERIALIZER {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.flowBy(record -> record.value().equals(BAD) ? BAD : record.key(), serde());
      }
    },
    WEIGHT {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.flowBy(
            record -> record.value().equals(BAD) ? BAD : record.key(),
            Serdes.String(),
            flow -> {
              if (flow.equals(BAD)) {
                throw new IllegalStateException("weight");
              }
              return 1;
            });
      }
    },
    WEIGHT_OUT_OF_RANGE {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.flowBy(
            record -> record.value().equals(BAD) ? BAD : record.key(),
            Serdes.String(),
            flow -> flow.equals(BAD) ? 0 : 1);
      }
    },
    COST {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.costBy(record -> throwIfBad(record).timestamp() == 0 ? 2 : 1);
      }
    },
    COST_OUT_OF_RANGE {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.costBy(record -> record.value().equals(BAD) ? -1 : 1);
      }
    },
    EXPIRY {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.expiresAt(
            record -> Instant.ofEpochMilli(throwIfBad(record).timestamp()).plusSeconds(100));
      }
    },
    DROPPABLE {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.droppable(record -> throwIfBad(record).key() != null);
      }
    },
    VALUE_SERIALIZER {
      @Override
      Shaper<String, String> in(Shaper<String, String> shaper) {
        return shaper.serdes(Serdes.String(), serde());
      }
    };

    abstract Shaper<String, String> in(Shaper<String, String> shaper);

    private static Record<String, String> throwIfBad(Record<String, String> record) {
      if (record.value().equals(BAD)) {
        throw new IllegalStateException("function");
      }
      return record;
    }

    private static Serde<String> serde() {
      Serializer<String> serializer =
          new StringSerializer() {
            @Override
            public byte[] serialize(String topic, String data) {
              if (data.equals(BAD)) {
                throw new IllegalStateException("serializer");
              }
              return super.serialize(topic, data);
            }
          };
      return Serdes.serdeFrom(serializer, Serdes.String().deserializer());
    }
  }

  @ParameterizedTest
  @EnumSource(Function.class)
  void aRecordThatAFunctionFailsOnIsTheHandlersAndChangesNothing(Function function) {
    List<String> without = run(function, false);
    assertThat(run(function, true)).isEqualTo(without);
  }

  /** Who left, and when: with records that are passed at once, queued, and dropped. */
  private static List<String> run(Function function, boolean withBad) {
    ShaperOptions.Builder options =
        ShaperOptions.builder()
            .rate(100)
            .burst(10)
            .cost(ShaperOptions.Cost.RECORDS)
            .target(Duration.ofMillis(20))
            .interval(Duration.ofMillis(100))
            .maxRecords(80)
            .dropBatch(1);
    try (TestTopology test = TestTopology.of(function.in(shaper(options)), CONTINUE)) {
      for (int i = 0; i < 100; i++) {
        boolean queued = test.forwarded.size() + test.dropped.size() < test.in();
        if (withBad && (queued || function != Function.VALUE_SERIALIZER)) {
          test.pipeSkipped("hot", BAD, test.nowMs());
          test.pipeSkipped("other", BAD, test.nowMs());
        }
        if (i % 40 < 30) {
          test.pipeMany("hot", 5 * i, 5 * i + 5);
        }
        test.pipe("quiet", "q" + i).advance(i == 90 ? 3000 : 10);
      }
      test.drain();
      assertThat(test.dropped).isNotEmpty();
      test.checkLaw();
      List<String> left = new ArrayList<>();
      test.forwarded.forEach(out -> left.add(out.value() + " " + out.atMs()));
      test.dropped.forEach(out -> left.add(out.value() + " dropped " + out.atMs()));
      return left;
    }
  }

  @ParameterizedTest
  @EnumSource(Function.class)
  void withoutAHandlerAFunctionThatFailsEndsTheTask(Function function) {
    try (TestTopology test = TestTopology.of(function.in(shaper(patient(1).burst(1))))) {
      test.pipe("first", "takes the burst");
      assertThatThrownBy(() -> test.pipe("k", BAD)).isInstanceOf(StreamsException.class);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1, 0, 1024",
    "1, -5, 1024",
    "1, 1025, 1024",
    "7, 7169, 7168",
    "1, -9223372036854775808, 1024",
    "1, 9223372036854775807, 1024"
  })
  void aCostOutOfRangeIsRefusedWithTheRangeAndTheCost(long quantum, long cost, long most) {
    Shaper<String, String> costly = shaper(patient(10).quantum(quantum)).costBy(record -> cost);
    try (TestTopology test = TestTopology.of(costly)) {
      assertThatThrownBy(() -> test.pipe("k", "v"))
          .hasRootCauseMessage(
              "cost must be between 1 and 1024 quanta (" + most + "), was " + cost);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 1024})
  void aCostWithinRangeIsTaken(long cost) {
    Shaper<String, String> costly = shaper(patient(10_000)).costBy(record -> cost);
    try (TestTopology test = TestTopology.of(costly)) {
      test.pipe("k", "v").pipe("k", "w").drain().advance(1000).checkLaw();
      assertThat(test.dropped).isEmpty();
    }
  }

  @Test
  void aWeightOutOfRangeIsRefusedWithTheRuleAndTheWeight() {
    Shaper<String, String> weighted =
        shaper(patient(10)).flowBy(record -> record.key(), Serdes.String(), flow -> 0);
    try (TestTopology test = TestTopology.of(weighted)) {
      assertThatThrownBy(() -> test.pipe("k", "v"))
          .hasRootCauseMessage("weight must be at least 1, was 0");
    }
  }

  @Test
  void functionsAreAskedOnceForEachRecord() {
    List<String> asked = new ArrayList<>();
    Shaper<String, String> counting =
        shaper(patient(100).burst(1))
            .flowBy(
                record -> {
                  asked.add("flow of " + record.value());
                  return record.key();
                },
                Serdes.String())
            .costBy(
                record -> {
                  asked.add("cost of " + record.value());
                  return 1;
                })
            .expiresAt(
                record -> {
                  asked.add("expiry of " + record.value());
                  return null;
                })
            .droppable(record -> asked.add("droppable " + record.value()));
    try (TestTopology test = TestTopology.of(counting)) {
      test.pipe("k", "passed").pipe("k", "queued").drain();
      assertThat(asked).hasSize(8).doesNotHaveDuplicates();
      test.checkLaw();
    }
  }

  @Test
  void functionsThatAreNullAreRefusedAtOnce() {
    Shaper<String, String> shaper = Shaper.named("s");
    assertThatThrownBy(() -> shaper.costBy(null)).hasMessage("cost");
    assertThatThrownBy(() -> shaper.expiresAt(null)).hasMessage("expiry");
    assertThatThrownBy(() -> shaper.droppable(null)).hasMessage("droppable");
    assertThatThrownBy(() -> shaper.flowBy(null, Serdes.String())).hasMessage("classifier");
    assertThatThrownBy(() -> shaper.flowBy(record -> "f", null)).hasMessage("flow serde");
    assertThatThrownBy(() -> shaper.flowBy(record -> "f", Serdes.String(), null))
        .hasMessage("weight");
    assertThatThrownBy(() -> shaper.options(null)).hasMessage("options");
    assertThatThrownBy(() -> shaper.serdes(null, Serdes.String())).hasMessage("key serde");
    assertThatThrownBy(() -> shaper.serdes(Serdes.String(), null)).hasMessage("value serde");
  }

  @Test
  void aQueuedRecordThatItsDeserializerRefusesStaysStored() {
    Deserializer<String> strings = new StringDeserializer();
    Serde<String> refusing =
        Serdes.serdeFrom(
            new StringSerializer(),
            (topic, data) -> {
              String value = strings.deserialize(topic, data);
              if (topic.endsWith("-changelog") && value.equals(BAD)) {
                throw new SerializationException("can't read " + value);
              }
              return value;
            });
    Shaper<String, String> shaper = shaper(TestTopology.patient(100).burst(1));
    Topology topology =
        TestTopology.topology(
            shaper.serdes(Serdes.String(), refusing), Serdes.String(), Serdes.String());
    try (TestTopology test = TestTopology.of(topology, CONTINUE)) {
      test.pipe("a", "passes").pipe("a", BAD).pipe("a", "queued").pipe("b", "queued, too");
      test.advance(1000);

      assertThat(test.forwardedValues()).containsExactly("passes", "queued, too", "queued");
      assertThat(test.saved()).isEqualTo(1);
      test.checkLaw();
    }
  }
}
