package io.streamshaper;

import static io.streamshaper.TestTopology.CHANGELOG;
import static io.streamshaper.TestTopology.DROPPED;
import static io.streamshaper.TestTopology.IN;
import static io.streamshaper.TestTopology.NAME;
import static io.streamshaper.TestTopology.OUT;
import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.errors.DefaultProductionExceptionHandler;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ShaperTopologyTest {
  private static final Consumed<String, String> STRINGS =
      Consumed.with(Serdes.String(), Serdes.String());
  private static final Produced<String, String> TO_STRINGS =
      Produced.with(Serdes.String(), Serdes.String());

  @Test
  void namesAreTheOnesThatAreDocumented() {
    Topology topology = TestTopology.topology(shaper(patient(1)), Serdes.String(), Serdes.String());
    TopologyDescription.Subtopology only = topology.describe().subtopologies().iterator().next();
    Map<String, TopologyDescription.Node> nodes =
        only.nodes().stream().collect(Collectors.toMap(node -> node.name(), node -> node));
    assertThat(nodes).containsKeys("s", "s-forwarded", "s-dropped");
    assertThat(((TopologyDescription.Processor) nodes.get("s")).stores())
        .containsExactlyInAnyOrder("s-queue", "s-commit-hook");
    try (TestTopology test = TestTopology.of(topology, Map.of())) {
      test.pipeMany("k", 0, 10);
      assertThat(test.driver().producedTopicNames())
          .containsExactlyInAnyOrder(OUT, "app-s-queue-changelog");
      test.checkLaw();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "a b", "a/b", "\u00e9"})
  void aNameThatIsNoTopicNameIsRefused(String name) {
    assertThatThrownBy(() -> Shaper.named(name))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("name must be 1 to 200 letters, digits, '.', '_' or '-', was '" + name + "'");
  }

  @Test
  void everyTaskGetsAProcessorOfItsOwn() {
    Shaper<String, String> shaper = shaper(patient(1));
    assertThat(shaper.get()).isNotSameAs(shaper.get());
    assertThat(shaper.stores()).extracting(StoreBuilder::name).hasSize(2);
  }

  @Test
  void theChangelogSuitsAQueueUnlessTheUserKnowsBetter() {
    Shaper<String, String> shaper =
        shaper(patient(1)).changelog(Map.of("segment.ms", "1234", "retention.ms", "5"));
    StoreBuilder<?> queue =
        shaper.stores().stream().filter(s -> s.name().equals("s-queue")).findFirst().orElseThrow();
    assertThat(queue.loggingEnabled()).isTrue();
    assertThat(queue.logConfig())
        .containsEntry("segment.ms", "1234")
        .containsEntry("retention.ms", "5")
        .containsEntry("segment.bytes", "16777216")
        .containsEntry("min.cleanable.dirty.ratio", "0.1")
        .containsEntry("message.timestamp.after.max.ms", "" + Long.MAX_VALUE);
  }

  @Test
  void nothingQueuedIsNothingWritten() {
    try (TestTopology test = TestTopology.of(patient(1000).burst(10))) {
      for (int i = 0; i < 200; i++) {
        test.pipe("k" + i % 3, "v" + i).advance(1 + i % 20);
      }
      assertThat(test.driver().producedTopicNames()).containsExactly(OUT);
      test.checkLaw();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "at_least_once, MEMORY, 1000000",
    "at_least_once, MEMORY, 0",
    "at_least_once, ROCKSDB, 1000000",
    "exactly_once_v2, MEMORY, 1000000",
    "exactly_once_v2, MEMORY, 0",
    "exactly_once_v2, ROCKSDB, 0",
    "exactly_once_v2, ROCKSDB, 1000000"
  })
  void whateverIsSavedIsDeletedOnce(String guarantee, ShaperOptions.Store store, long cacheBytes) {
    Map<String, Object> config =
        Map.of(
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
            guarantee,
            StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG,
            cacheBytes);
    ShaperOptions.Builder options = patient(100).burst(5).store(store).maxRecords(100);
    try (TestTopology test = TestTopology.of(shaper(options), config)) {
      for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 60; i++) {
          test.pipe("k" + i % 4, "v" + i).pipe("hot", "h" + i);
          if (i % 5 == 0) {
            test.advance(30);
          }
        }
        test.drain().advance(100).checkLaw();
        assertThat(test.saved()).isZero();
        assertThat(test.puts()).isEqualTo(test.tombstones()).isPositive();
      }
    }
  }

  @Test
  void twoShapersOfOneTopologyShareNothing() {
    StreamsBuilder builder = new StreamsBuilder();
    KStream<String, String> in = builder.stream(IN, STRINGS);
    Shaper<String, String> one = shaper(patient(100).burst(3));
    Shaped<String, String> shaped = one.shape(in);
    shaped.forwarded().to(OUT, TO_STRINGS);
    shaped.dropped().to(DROPPED, TO_STRINGS);
    Shaper<String, String> other =
        Shaper.<String, String>named("t")
            .serdes(Serdes.String(), Serdes.String())
            .options(patient(100).burst(3).build());
    other.shape(in).forwarded().to("other", TO_STRINGS);
    try (TestTopology test = TestTopology.of(builder.build(), Map.of())) {
      for (int i = 0; i < 100; i++) {
        test.pipe("k" + i % 3, "v" + i).advance(5);
      }
      test.drain();
      assertThat(test.read("other").stream().map(r -> TestTopology.text(r.value())))
          .containsExactlyElementsOf(test.forwardedValues());
      test.checkLaw();
    }
  }

  @Test
  void twoDriversOfTheSameTopologyShareNothing() {
    Shaper<String, String> shaper = shaper(patient(100).burst(3).maxRecords(50).dropBatch(1));
    try (TestTopology one = TestTopology.of(shaper);
        TestTopology other = TestTopology.of(shaper)) {
      for (int i = 0; i < 200; i++) {
        one.pipe("k" + i % 3, "v" + i);
        other.pipe("k" + i % 3, "v" + i);
        one.step(5);
        other.step(5);
      }
      one.drain();
      other.drain();
      assertThat(one.dropped).isNotEmpty();
      assertThat(one.forwardedValues()).isEqualTo(other.forwardedValues());
      assertThat(one.droppedValues()).isEqualTo(other.droppedValues());
      one.checkLaw();
      other.checkLaw();
    }
  }

  @Test
  void oneShaperBehindAnotherLosesNothing() {
    StreamsBuilder builder = new StreamsBuilder();
    Shaped<String, String> first =
        shaper(patient(200).burst(5).maxRecords(40)).shape(builder.stream(IN, STRINGS));
    Shaped<String, String> second =
        Shaper.<String, String>named("t")
            .serdes(Serdes.String(), Serdes.String())
            .options(patient(100).burst(5).maxRecords(30).build())
            .shape(first.forwarded());
    first.dropped().merge(second.dropped()).to(DROPPED, TO_STRINGS);
    second.forwarded().to(OUT, TO_STRINGS);
    try (TestTopology test = TestTopology.of(builder.build(), Map.of())) {
      for (int i = 0; i < 300; i++) {
        test.pipe("k" + i % 3, "v" + i).pipe("hot", "h" + i).advance(10);
      }
      test.drain().advance(1000);
      assertThat(test.dropped).isNotEmpty();
      test.checkLaw();
    }
  }

  /** Its cache is emptied in the midst of a commit, and what comes then must be part of it. */
  @Test
  void whatACachedAggregationForwardsDuringACommitIsSavedByThatCommit() {
    StreamsBuilder builder = new StreamsBuilder();
    KStream<String, String> counts =
        builder.stream(IN, STRINGS)
            .groupByKey()
            .count(
                Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts")
                    .withCachingEnabled())
            .toStream()
            .mapValues(count -> "" + count);
    Shaped<String, String> shaped = shaper(patient(10).burst(1)).shape(counts);
    shaped.forwarded().to(OUT, TO_STRINGS);
    try (TestTopology test = TestTopology.of(builder.build(), Map.of())) {
      for (int i = 1; i <= 30; i++) {
        test.pipe("k" + i % 3, "" + i);
        assertThat(test.forwarded.size() + test.saved()).isEqualTo(i);
      }
      test.drain();
      for (int k = 0; k < 3; k++) {
        String key = "k" + k;
        assertThat(test.forwarded.stream().filter(o -> o.key().equals(key)).map(o -> o.value()))
            .containsExactly("1", "2", "3", "4", "5", "6", "7", "8", "9", "10");
      }
    }
  }

  @Test
  void theProcessorApiWillDoAsWell() {
    Topology topology = new Topology();
    topology
        .addSource("source", new StringDeserializer(), new StringDeserializer(), IN)
        .addProcessor(NAME, shaper(patient(100).burst(5).maxRecords(20)), "source")
        .addSink("s-forwarded", OUT, new StringSerializer(), new StringSerializer(), NAME)
        .addSink("s-dropped", DROPPED, new StringSerializer(), new StringSerializer(), NAME);
    try (TestTopology test = TestTopology.of(topology, Map.of())) {
      test.pipeMany("k", 0, 60).pipe("quiet", "q").drain();
      assertThat(test.dropped).isNotEmpty();
      test.checkLaw();
    }
  }

  @Test
  void aPlainProcessStepWillDoAsWell() {
    StreamsBuilder builder = new StreamsBuilder();
    KStream<String, String> both =
        builder.stream(IN, STRINGS)
            .process(shaper(patient(100).burst(5).maxRecords(20)), Named.as(NAME));
    both.filter((key, value) -> true, Named.as("s-forwarded")).to(OUT, TO_STRINGS);
    both.filter((key, value) -> true, Named.as("s-dropped")).to(DROPPED, TO_STRINGS);
    try (TestTopology test = TestTopology.of(builder.build(), Map.of())) {
      test.pipeMany("k", 0, 60).pipe("quiet", "q").drain();
      assertThat(test.dropped).isNotEmpty();
      test.checkLaw();
    }
  }

  @Test
  void theApplicationsSerdesAreTheDefault() {
    StreamsBuilder builder = new StreamsBuilder();
    Shaped<String, String> shaped =
        Shaper.<String, String>named(NAME)
            .options(patient(100).burst(1).build())
            .shape(builder.stream(IN));
    shaped.forwarded().to(OUT);
    Map<String, Object> config =
        Map.of(
            StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG,
            Serdes.StringSerde.class,
            StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG,
            Serdes.StringSerde.class);
    try (TestTopology test = TestTopology.of(builder.build(), config)) {
      test.pipeMany("k", 0, 10).pipe("quiet", "q").drain().checkLaw();
    }
  }

  @Test
  void aStepBehindThatFailsOnOneRecordHarmsNoOther() {
    StreamsBuilder builder = new StreamsBuilder();
    ShaperOptions.Builder options = patient(100).burst(2).maxAge(Duration.ofSeconds(1));
    Shaped<String, String> shaped = shaper(options).shape(builder.stream(IN, STRINGS));
    shaped.forwarded().mapValues(ShaperTopologyTest::failOnBad).to(OUT, TO_STRINGS);
    shaped.dropped().mapValues(ShaperTopologyTest::failOnBad).to(DROPPED, TO_STRINGS);
    Map<String, Object> config =
        Map.of(
            StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
            LogAndContinueProcessingExceptionHandler.class);
    try (TestTopology test = TestTopology.of(builder.build(), config)) {
      for (int i = 0; i < 150; i++) {
        test.pipe("a", "a" + i);
        test.pipeSkipped(i % 2 == 0 ? "a" : "b", "bad", test.nowMs() - 990);
        test.pipe("b", "b" + i, test.nowMs() - 500);
        test.advance(10);
      }
      test.drain().advance(3000);
      assertThat(test.dropped).isNotEmpty();
      assertThat(test.saved()).isZero();
      test.checkLaw();
    }
  }

  private static String failOnBad(String value) {
    if (value.equals("bad")) {
      throw new IllegalStateException("step behind");
    }
    return value;
  }

  /** A sink directly behind the shaper has no processor around it that would catch. */
  @Test
  void aSinkBehindThatFailsOnOneRecordHarmsNoOther() {
    StringSerializer failing =
        new StringSerializer() {
          @Override
          public byte[] serialize(String topic, String data) {
            return super.serialize(topic, failOnBad(data));
          }
        };
    Topology topology = new Topology();
    topology
        .addSource("source", new StringDeserializer(), new StringDeserializer(), IN)
        .addProcessor(NAME, shaper(patient(100).burst(2).maxRecords(10)), "source")
        .addSink("s-forwarded", OUT, new StringSerializer(), failing, NAME)
        .addSink("s-dropped", DROPPED, new StringSerializer(), failing, NAME);
    Map<String, Object> config =
        Map.of(
            StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
            LogAndContinueProcessingExceptionHandler.class,
            StreamsConfig.PRODUCTION_EXCEPTION_HANDLER_CLASS_CONFIG,
            DefaultProductionExceptionHandler.class);
    try (TestTopology test = TestTopology.of(topology, config)) {
      for (int i = 0; i < 100; i++) {
        test.pipe("a", "a" + i);
        if (i % 5 == 0) {
          test.pipeSkipped(i % 10 == 0 ? "a" : "b", "bad", test.nowMs());
        }
        test.pipe("b", "b" + i).advance(10);
      }
      test.drain().advance(1000);
      test.checkLaw();
      assertThat(test.saved()).isZero();
    }
  }

  @Test
  void whatIsQueuedIsInTheChangelogAfterEachCommit() {
    try (TestTopology test = TestTopology.of(patient(1).burst(1))) {
      test.pipeMany("k", 0, 11);
      assertThat(test.saved()).isEqualTo(10);
      assertThat(test.driver().producedTopicNames()).isEqualTo(Set.of(OUT, CHANGELOG));
      assertThat(List.of(test.puts(), test.tombstones())).containsExactly(10L, 0L);
      test.checkLaw();
    }
  }
}
