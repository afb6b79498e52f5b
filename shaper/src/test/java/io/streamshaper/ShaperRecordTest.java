package io.streamshaper;

import static io.streamshaper.TestTopology.IN;
import static io.streamshaper.TestTopology.NAME;
import static io.streamshaper.TestTopology.OUT;
import static io.streamshaper.TestTopology.bytes;
import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class ShaperRecordTest {
  private static final byte[] EMPTY = {};

  @ParameterizedTest(name = "queued: {0}")
  @ValueSource(booleans = {false, true})
  void whatLeavesIsWhatCame(boolean queued) {
    Shaper<byte[], byte[]> shaper =
        Shaper.<byte[], byte[]>named(NAME).options(patient(100).burst(1).build());
    try (TestTopology test = TestTopology.of(shaper, Serdes.ByteArray(), Serdes.ByteArray())) {
      if (queued) {
        test.pipe("filler", "takes the burst");
      }
      byte[] large = new byte[1_000_000];
      new Random(1).nextBytes(large);
      for (byte[] key : new byte[][] {null, EMPTY, {0}, {(byte) 0xff, (byte) 0x80, 0}, large}) {
        for (byte[] value : new byte[][] {null, EMPTY, {-1}, large}) {
          for (Headers headers : headers()) {
            int before = test.forwarded.size();
            test.pipe(key, value, headers, test.nowMs());
            assertThat(test.forwarded.size() - before).isEqualTo(queued ? 0 : 1);
            if (!queued) {
              test.advance(20);
            }
          }
        }
      }
      test.drain();
      assertThat(test.dropped).isEmpty();
      test.checkLaw();
    }
  }

  private static List<Headers> headers() {
    return List.of(
        TestTopology.headers(),
        TestTopology.headers()
            .add("a", bytes("1"))
            .add("b", null)
            .add("a", EMPTY)
            .add("", new byte[] {0, -1})
            .add("\u00e9\u4e2d\ud83d\ude00", bytes("1"))
            .add("a", bytes("1")));
  }

  @Test
  void recordsWithoutAKeyShareOneFlow() {
    try (TestTopology test = TestTopology.of(patient(100).burst(1))) {
      test.pipeMany(null, 0, 100).pipeMany("", 0, 100).pipe("quiet", "q").advance(40);
      assertThat(test.forwardedKeys().subList(1, 5)).contains("quiet", "", null);
      test.drain().checkLaw();
    }
  }

  @Test
  void byteArrayKeysAreTheSameFlowIfTheirBytesAre() {
    Shaper<byte[], byte[]> shaper =
        Shaper.<byte[], byte[]>named(NAME).options(patient(100).burst(1).build());
    try (TestTopology test = TestTopology.of(shaper, Serdes.ByteArray(), Serdes.ByteArray())) {
      test.pipeMany("hot", 0, 100).pipe("quiet", "q").advance(20);
      assertThat(test.forwardedKeys()).contains("quiet");
      test.drain().checkLaw();
    }
  }

  @Test
  void aRecordIsQueuedAsItWasWhenItCame() {
    StreamsBuilder builder = new StreamsBuilder();
    Shaped<byte[], byte[]> shaped =
        Shaper.<byte[], byte[]>named(NAME)
            .serdes(Serdes.ByteArray(), Serdes.ByteArray())
            .options(patient(100).burst(1).build())
            .shape(
                builder.stream(IN, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                    .process(ChangesWhatItForwarded::new));
    shaped.forwarded().to(OUT, Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
    try (TestTopology test = TestTopology.of(builder.build(), Map.of())) {
      test.pipe("filler", "takes the burst");
      for (int i = 0; i < 20; i++) {
        test.pipe(bytes("k" + i % 3), bytes("v" + i), headers().get(1), test.nowMs());
      }
      test.drain();
      test.checkLaw();
    }
  }

  /** Nobody should, and somebody will. */
  private static final class ChangesWhatItForwarded
      extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
    @Override
    public void process(Record<byte[], byte[]> record) {
      context().forward(record);
      if (record.key()[0] == 'k') { // queued
        record.headers().add("late", bytes("leak"));
        record.key()[0] = '?';
        record.value()[0] = '?';
      }
    }
  }

  @ParameterizedTest(name = "queued: {0}")
  @ValueSource(booleans = {false, true})
  void headersThatASerializerAddsStayWithItsBytes(boolean queued) {
    Serde<String> noisy = Serdes.serdeFrom(new AddsHeader(), Serdes.String().deserializer());
    Shaper<String, String> shaper =
        Shaper.<String, String>named(NAME)
            .options(patient(100).burst(1).cost(ShaperOptions.Cost.BYTES).build())
            .serdes(noisy, noisy);
    try (TestTopology test = TestTopology.of(shaper)) {
      if (queued) {
        test.pipe("filler", "takes the burst");
      }
      test.pipe("k", "v").drain();
      assertThat(test.forwarded)
          .allSatisfy(out -> assertThat(out.record().headers().toArray()).isEmpty());
      test.advance(1000).checkLaw();
    }
  }

  private static final class AddsHeader implements Serializer<String> {
    private final StringSerializer serializer = new StringSerializer();

    @Override
    public byte[] serialize(String topic, String data) {
      return serializer.serialize(topic, data);
    }

    @Override
    public byte[] serialize(String topic, Headers headers, String data) {
      headers.add("serializer", bytes("was here"));
      return serialize(topic, data);
    }
  }

  @Test
  void headersThatADeserializerReadsAreThere() {
    Deserializer<String> needsHeader =
        new Deserializer<>() {
          @Override
          public String deserialize(String topic, byte[] data) {
            throw new AssertionError("must be told of the headers");
          }

          @Override
          public String deserialize(String topic, Headers headers, byte[] data) {
            return TestTopology.text(headers.lastHeader("type").value())
                + TestTopology.text(data).substring(1);
          }
        };
    Serde<String> serde = Serdes.serdeFrom(new StringSerializer(), needsHeader);
    Shaper<String, String> shaper = shaper(patient(100).burst(1)).serdes(Serdes.String(), serde);
    try (TestTopology test = TestTopology.of(shaper)) {
      test.pipe("filler", "takes the burst");
      test.pipe(
          bytes("k"), bytes("vx"), TestTopology.headers().add("type", bytes("v")), test.nowMs());
      test.drain().checkLaw();
    }
  }

  static List<Long> oddTimestamps() {
    long now = TestTopology.START_MS;
    List<Long> odd = new ArrayList<>(List.of(0L, 1L, now / 1000, now * 1000, now * 1_000_000));
    odd.addAll(List.of(Long.MAX_VALUE, Long.MAX_VALUE - 1, Long.MAX_VALUE / 1_000_000));
    odd.add(Long.MAX_VALUE / 1_000_000 + 1);
    for (long days : new long[] {-365, -8, 8, 365, 365 * 300}) {
      odd.add(now + TimeUnit.DAYS.toMillis(days));
    }
    return odd;
  }

  @ParameterizedTest(name = "timestamp {0}")
  @MethodSource("oddTimestamps")
  void anOddTimestampChangesNothingForAnybody(long oddMs) {
    ShaperOptions.Builder options =
        ShaperOptions.builder().rate(100).burst(1).maxAge(Duration.ofSeconds(2));
    List<String> usual = run(options, -1);
    assertThat(usual).hasSizeGreaterThan(100);
    assertThat(run(options, oddMs)).isEqualTo(usual);
    options = ShaperOptions.builder().maxAge(Duration.ofSeconds(1));
    assertThat(run(options, oddMs)).isEqualTo(run(options, -1));
  }

  /** Two keys, one of which has odd timestamps unless they are -1; who left, and when. */
  private static List<String> run(ShaperOptions.Builder options, long oddMs) {
    try (TestTopology test = TestTopology.of(options)) {
      for (int i = 0; i < 100; i++) {
        test.pipe("odd", "o" + i, oddMs < 0 ? test.nowMs() : oddMs);
        test.pipe("odd", "O" + i, oddMs < 0 ? test.nowMs() : oddMs);
        if (i % 10 == 0) {
          test.pipe("normal", "n" + i);
        }
        test.advance(10);
      }
      test.drain();
      List<String> left = new ArrayList<>();
      test.forwarded.forEach(out -> left.add(out.value() + " at " + out.atMs()));
      test.dropped.forEach(
          out ->
              left.add(
                  out.value()
                      + " dropped at "
                      + out.atMs()
                      + out.header(Shaper.REASON_HEADER)
                      + out.header(Shaper.SOJOURN_HEADER)));
      test.checkLaw();
      return left;
    }
  }

  @Test
  void aPlausibleFutureIsNoSojourn() {
    ShaperOptions.Builder options =
        ShaperOptions.builder().rate(100).burst(1).maxAge(Duration.ofSeconds(2));
    try (TestTopology test = TestTopology.of(options)) {
      for (int i = 0; i < 500; i++) {
        test.pipe("ahead", "a" + i, test.nowMs() + 86_400_000L);
      }
      test.pipe("normal", "n").advance(4000);
      assertThat(test.dropped).isEmpty();
      assertThat(test.forwardedKeys().subList(0, 4)).contains("normal");
      test.drain().checkLaw();
    }
  }

  @Test
  void whatCountsAsPlausibleIsTheUsersToSay() {
    ShaperOptions.Builder options =
        patient(100).maxAge(Duration.ofMillis(10)).plausibleAge(Duration.ofMillis(100));
    try (TestTopology test = TestTopology.of(options)) {
      test.pipe("k", "old", test.nowMs() - 100).pipe("k", "mistaken", test.nowMs() - 101);
      assertThat(test.droppedValues()).containsExactly("old");
      assertThat(test.forwardedValues()).containsExactly("mistaken");
      test.checkLaw();
    }
  }

  @Test
  void theSojournMayCountFromTheArrival() {
    ShaperOptions.Builder options =
        patient(1)
            .burst(1)
            .maxAge(Duration.ofMillis(1500))
            .enqueueTime(ShaperOptions.EnqueueTime.ARRIVAL);
    try (TestTopology test = TestTopology.of(options)) {
      long hourAgoMs = test.nowMs() - 3_600_000;
      for (int i = 0; i < 4; i++) {
        test.pipe("k", "v" + i, hourAgoMs);
      }
      test.advance(2000);
      assertThat(test.forwardedValues()).containsExactly("v0", "v1");
      assertThat(test.droppedValues()).containsExactly("v2", "v3");
      assertThat(test.dropped)
          .allSatisfy(out -> assertThat(out.header(Shaper.SOJOURN_HEADER)).isEqualTo("2000"));
      test.checkLaw();
    }
  }

  @Test
  void sourceHeadersSayWhereARecordCameFrom() {
    ShaperOptions.Builder options =
        patient(100).burst(1).sourceHeaders(true).maxAge(Duration.ofMinutes(1));
    try (TestTopology test = TestTopology.of(options)) {
      test.pipe("k", "direct").pipe("k", "queued").pipe("k", "expired", test.nowMs() - 100_000);
      test.drain();
      List<TestTopology.Out> all = new ArrayList<>(test.forwarded);
      all.addAll(test.dropped);
      assertThat(all)
          .extracting(TestTopology.Out::value)
          .containsExactly("direct", "queued", "expired");
      for (int offset = 0; offset < 3; offset++) {
        TestTopology.Out out = all.get(offset);
        assertThat(out.header(Shaper.SOURCE_TOPIC_HEADER)).isEqualTo(IN);
        assertThat(out.header(Shaper.SOURCE_PARTITION_HEADER)).isEqualTo("0");
        assertThat(out.header(Shaper.SOURCE_OFFSET_HEADER)).isEqualTo("" + offset);
      }
    }
  }
}
