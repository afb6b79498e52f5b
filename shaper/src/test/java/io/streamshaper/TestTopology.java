package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.test.TestRecord;

/**
 * A shaper in the test driver, with books kept of what goes in and comes out. Topics are read and
 * written as raw bytes, so that nothing between the test and the shaper changes a record.
 */
final class TestTopology implements AutoCloseable {
  static final String NAME = "s";
  static final String IN = "in";
  static final String OUT = "out";
  static final String DROPPED = "dropped";
  static final String APPLICATION = "app";
  static final String CHANGELOG = APPLICATION + "-" + NAME + "-queue-changelog";
  static final long TICK_MS = Pace.TICK.toMillis();

  /** An ordinary moment; what is far from it must be far in both directions. */
  static final long START_MS = Instant.parse("2026-03-04T05:06:07Z").toEpochMilli();

  private static final List<String> DROP_HEADERS =
      List.of(
          Shaper.REASON_HEADER, Shaper.SOJOURN_HEADER, Shaper.FLOW_HEADER, Shaper.TIMESTAMP_HEADER);

  private static final Set<String> SOURCE_HEADERS =
      Set.of(
          Shaper.SOURCE_TOPIC_HEADER, Shaper.SOURCE_PARTITION_HEADER, Shaper.SOURCE_OFFSET_HEADER);

  /** A record that came out, and when, by the driver's clock. */
  record Out(TestRecord<byte[], byte[]> record, long atMs) {
    String key() {
      return text(record.key());
    }

    String value() {
      return text(record.value());
    }

    String header(String name) {
      Header header = record.headers().lastHeader(name);
      return header == null ? null : text(header.value());
    }

    boolean has(String name) {
      return record.headers().lastHeader(name) != null;
    }
  }

  private final Path stateDir;
  private final TopologyTestDriver driver;
  private final TestInputTopic<byte[], byte[]> in;

  private final Map<String, List<String>> inByKey = new LinkedHashMap<>();
  private final Map<Bytes, byte[]> changelog = new LinkedHashMap<>();
  private long puts;
  private long tombstones;
  private long nowMs = START_MS;

  final List<Out> forwarded = new ArrayList<>();
  final List<Out> dropped = new ArrayList<>();

  /** All that was written to the changelog. */
  final List<TestRecord<byte[], byte[]>> changes = new ArrayList<>();

  static TestTopology of(ShaperOptions.Builder options) {
    return of(shaper(options));
  }

  static TestTopology of(Shaper<String, String> shaper) {
    return of(shaper, Map.of());
  }

  static TestTopology of(Shaper<String, String> shaper, Map<String, Object> config) {
    return of(topology(shaper, Serdes.String(), Serdes.String()), config);
  }

  static <K, V> TestTopology of(Shaper<K, V> shaper, Serde<K> key, Serde<V> value) {
    return of(topology(shaper.serdes(key, value), key, value), Map.of());
  }

  /** Any topology between these topics, with a shaper of this name. */
  static TestTopology of(Topology topology, Map<String, Object> config) {
    return new TestTopology(topology, config);
  }

  static Shaper<String, String> shaper(ShaperOptions.Builder options) {
    return Shaper.<String, String>named(NAME)
        .serdes(Serdes.String(), Serdes.String())
        .options(options.build());
  }

  /** A rate, and no drop by age for a very long time. */
  static ShaperOptions.Builder patient(double rate) {
    return ShaperOptions.builder()
        .rate(rate)
        .target(Duration.ofDays(1))
        .interval(Duration.ofDays(2));
  }

  static <K, V> Topology topology(Shaper<K, V> shaper, Serde<K> key, Serde<V> value) {
    StreamsBuilder builder = new StreamsBuilder();
    Shaped<K, V> shaped = shaper.shape(builder.stream(IN, Consumed.with(key, value)));
    shaped.forwarded().to(OUT, Produced.with(key, value));
    shaped.dropped().to(DROPPED, Produced.with(key, value));
    return builder.build();
  }

  private TestTopology(Topology topology, Map<String, Object> config) {
    Properties properties = new Properties();
    try {
      stateDir = Files.createTempDirectory("shaper-test");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, APPLICATION);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.toString());
    properties.put(StreamsConfig.POLL_MS_CONFIG, 5L);
    properties.putAll(config);
    driver = new TopologyTestDriver(topology, properties, Instant.ofEpochMilli(nowMs));
    in = driver.createInputTopic(IN, new ByteArraySerializer(), new ByteArraySerializer());
  }

  /** What has been written to a topic and not been read yet. */
  List<TestRecord<byte[], byte[]>> read(String topic) {
    if (!driver.producedTopicNames().contains(topic)) {
      return List.of();
    }
    return driver
        .createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer())
        .readRecordsToList();
  }

  TopologyTestDriver driver() {
    return driver;
  }

  long nowMs() {
    return nowMs;
  }

  /** Takes in a record that is as old as it looks: not at all. */
  TestTopology pipe(String key, String value) {
    return pipe(key, value, nowMs);
  }

  TestTopology pipe(String key, String value, long timestampMs) {
    return pipe(bytes(key), bytes(value), headers(), timestampMs);
  }

  TestTopology pipe(byte[] key, byte[] value, Headers headers, long timestampMs) {
    String keyHex = hex(key); // before anybody changes the array
    String item = item(key, value, headers, timestampMs);
    pipeUncounted(key, value, headers, timestampMs);
    inByKey.computeIfAbsent(keyHex, k -> new ArrayList<>()).add(item);
    return this;
  }

  /** Many records of a key, numbered. */
  TestTopology pipeMany(String key, int from, int to) {
    for (int i = from; i < to; i++) {
      pipe(key, key + i);
    }
    return this;
  }

  /** A record that an exception handler is expected to skip: it must leave no trace. */
  TestTopology pipeSkipped(String key, String value, long timestampMs) {
    pipeUncounted(bytes(key), bytes(value), headers(), timestampMs);
    return this;
  }

  /** A record that is none of the law's business. */
  void pipeUncounted(byte[] key, byte[] value, Headers headers, long timestampMs) {
    in.pipeInput(new TestRecord<>(key, value, headers, Instant.ofEpochMilli(timestampMs)));
    collect();
  }

  /** Lets time pass as a busy thread sees it. */
  TestTopology advance(long ms) {
    for (long left = ms; left > 0; left -= TICK_MS) {
      step(Math.min(left, TICK_MS));
    }
    return this;
  }

  /** Lets time pass with one tick at the end, however long it takes. */
  TestTopology step(long ms) {
    nowMs += ms;
    driver.advanceWallClockTime(Duration.ofMillis(ms));
    collect();
    return this;
  }

  /** A correction of the clock. */
  TestTopology stepBack(long ms) {
    nowMs -= ms;
    RestartableShaper.clockOf(driver).addAndGet(-ms);
    return this;
  }

  private void collect() {
    read(OUT).forEach(record -> forwarded.add(new Out(record, nowMs)));
    read(DROPPED).forEach(record -> dropped.add(new Out(record, nowMs)));
    for (TestRecord<byte[], byte[]> record : read(CHANGELOG)) {
      changes.add(record);
      Bytes key = Bytes.wrap(record.key());
      if (record.key().length < Long.BYTES) {
        continue; // the position
      }
      if (record.value() == null) {
        tombstones++;
        assertThat(changelog.remove(key)).as("tombstone of nothing: %s", key).isNotNull();
      } else {
        puts++;
        changelog.put(key, record.value());
      }
    }
  }

  List<String> forwardedKeys() {
    return forwarded.stream().map(Out::key).toList();
  }

  List<String> forwardedValues() {
    return forwarded.stream().map(Out::value).toList();
  }

  List<String> droppedValues() {
    return dropped.stream().map(Out::value).toList();
  }

  Map<String, Long> droppedByReason() {
    return dropped.stream()
        .collect(
            Collectors.groupingBy(out -> out.header(Shaper.REASON_HEADER), Collectors.counting()));
  }

  /** Records written to the changelog since the start. */
  long puts() {
    return puts;
  }

  long tombstones() {
    return tombstones;
  }

  /** What a restart would find queued now. */
  long saved() {
    return savedSequences().size();
  }

  List<Long> savedSequences() {
    return StoredQueue.of(changelog).sequences();
  }

  long in() {
    return inByKey.values().stream().mapToLong(List::size).sum();
  }

  /** Lets time pass until nothing is queued. */
  TestTopology drain() {
    for (int i = 0; forwarded.size() + dropped.size() < in(); i++) {
      assertThat(i)
          .as("ticks without an end: %s of %s", forwarded.size(), in())
          .isLessThan(100_000);
      step(TICK_MS);
    }
    return this;
  }

  /**
   * In = forwarded + dropped, each with exactly one reason, + still queued, per key and in total;
   * the order of each key is kept in each of the three. What is queued is what the changelog has.
   */
  void checkLaw() {
    pipe("end", "end " + in()); // has the driver commit
    Map<String, List<String>> forwardedByKey = new HashMap<>();
    Map<String, List<String>> droppedByKey = new HashMap<>();
    Map<String, List<String>> queuedByKey = new HashMap<>();
    for (Out out : forwarded) {
      add(forwardedByKey, out.record.key(), original(out));
    }
    for (Out out : dropped) {
      add(droppedByKey, out.record.key(), originalOfDropped(out));
    }
    for (Record<byte[], byte[]> queued : StoredQueue.of(changelog).records()) {
      add(
          queuedByKey,
          queued.key(),
          item(queued.key(), queued.value(), queued.headers(), queued.timestamp()));
    }

    for (Map.Entry<String, List<String>> entry : inByKey.entrySet()) {
      List<String> came = entry.getValue();
      List<String> left = new ArrayList<>();
      for (Map<String, List<String>> place : List.of(forwardedByKey, droppedByKey, queuedByKey)) {
        List<String> there = place.getOrDefault(entry.getKey(), List.of());
        assertInOrder(there, came);
        left.addAll(there);
      }
      assertThat(left)
          .as("law for key %s", entry.getKey())
          .containsExactlyInAnyOrderElementsOf(came);
    }
    assertThat(inByKey.keySet())
        .containsAll(forwardedByKey.keySet())
        .containsAll(droppedByKey.keySet())
        .containsAll(queuedByKey.keySet());
  }

  private static void assertInOrder(List<String> part, List<String> whole) {
    int at = 0;
    for (String item : part) {
      while (at < whole.size() && !whole.get(at).equals(item)) {
        at++;
      }
      assertThat(at).as("order at %s", item).isLessThan(whole.size());
      at++;
    }
  }

  private static void add(Map<String, List<String>> byKey, byte[] key, String item) {
    byKey.computeIfAbsent(hex(key), k -> new ArrayList<>()).add(item);
  }

  /** As it came in: without the mark and the source. */
  private static String original(Out out) {
    List<Header> headers = new ArrayList<>(Arrays.asList(out.record.headers().toArray()));
    headers.removeIf(
        header -> header.key().equals(Shaper.MARK_HEADER) || SOURCE_HEADERS.contains(header.key()));
    return item(out.record.key(), out.record.value(), headers(headers), out.record.timestamp());
  }

  /** As it came in; the headers of the drop are the last ones, whatever the record's own. */
  private static String originalOfDropped(Out out) {
    Header[] headers = out.record.headers().toArray();
    int own = headers.length - DROP_HEADERS.size();
    assertThat(Stream.of(headers).skip(own).map(Header::key)).isEqualTo(DROP_HEADERS);
    assertThat(out.header(Shaper.REASON_HEADER)).isIn("codel", "ceiling", "expired", "overlimit");
    return item(
        out.record.key(),
        out.record.value(),
        headers(Arrays.asList(headers).subList(0, own)),
        Long.parseLong(out.header(Shaper.TIMESTAMP_HEADER)));
  }

  private static String item(byte[] key, byte[] value, Headers headers, long timestampMs) {
    String all =
        Stream.of(headers.toArray())
            .map(header -> header.key() + "=" + hex(header.value()))
            .collect(Collectors.joining(","));
    return hex(key) + ":" + hex(value) + "@" + timestampMs + "[" + all + "]";
  }

  private static String hex(byte[] bytes) {
    return bytes == null ? "null" : HexFormat.of().formatHex(bytes);
  }

  static Headers headers() {
    return new Record<>(null, null, 0).headers();
  }

  private static Headers headers(List<Header> list) {
    Headers headers = headers();
    list.forEach(headers::add);
    return headers;
  }

  static byte[] bytes(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] bytes) {
    return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
  }

  @Override
  public void close() {
    driver.close();
    try (Stream<Path> files = Files.walk(stateDir)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
