package io.streamshaper;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.internals.WrappedStateStore;
import org.apache.kafka.streams.test.TestRecord;

/**
 * A shaper in the test driver that can be stopped and started again, with other options and at
 * another time. The driver restores nothing, so a step in front of the shaper puts what the
 * changelog has into its store before the shaper begins.
 */
final class RestartableShaper implements AutoCloseable {
  private static final String NAME = TestTopology.NAME;

  /** What leaves, and to where; may throw, as a step behind the shaper may. */
  interface Downstream {
    void forwarded(Record<byte[], byte[]> record);

    void dropped(Record<byte[], byte[]> record);
  }

  private final Downstream downstream;
  private final Serializer<byte[]> sink;

  /** The changelog, compacted. */
  private final TreeMap<Bytes, byte[]> stored = new TreeMap<>();

  private Path stateDir;
  private TopologyTestDriver driver;
  private TestInputTopic<byte[], byte[]> in;
  private long nowMs;

  /**
   * @param sink writes the values of what left; may throw, as a serializer behind the shaper may
   */
  RestartableShaper(Downstream downstream, Serializer<byte[]> sink) {
    this.downstream = downstream;
    this.sink = sink;
  }

  RestartableShaper(Downstream downstream) {
    this(downstream, new ByteArraySerializer());
  }

  void start(Shaper<byte[], byte[]> shaper, Map<String, Object> config, long startMs) {
    nowMs = startMs;
    Topology topology =
        new Topology()
            .addSource("source", new ByteArrayDeserializer(), new ByteArrayDeserializer(), "in")
            .addProcessor("restore", Restore::new, "source")
            .addProcessor(NAME, shaper, "restore")
            .addProcessor(NAME + "-forwarded", () -> new Step(downstream::forwarded), NAME)
            .addProcessor(NAME + "-dropped", () -> new Step(downstream::dropped), NAME)
            .addSink("a", "out", new ByteArraySerializer(), sink, NAME + "-forwarded")
            .addSink("b", "dropped", new ByteArraySerializer(), sink, NAME + "-dropped")
            .connectProcessorAndStateStores("restore", NAME + "-queue");
    Properties properties = new Properties();
    try {
      stateDir = Files.createTempDirectory("shaper-test");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, TestTopology.APPLICATION);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.toString());
    properties.put(StreamsConfig.POLL_MS_CONFIG, 5L);
    properties.putAll(config);
    driver = new TopologyTestDriver(topology, properties, Instant.ofEpochMilli(startMs));
    in = driver.createInputTopic("in", new ByteArraySerializer(), new ByteArraySerializer());
  }

  /** As a clean stop does it: with all tombstones written. */
  void stop() {
    commit();
    commit();
    close();
  }

  long nowMs() {
    return nowMs;
  }

  void pipe(byte[] key, byte[] value, Headers headers, long timestampMs) {
    in.pipeInput(new TestRecord<>(key, value, headers, Instant.ofEpochMilli(timestampMs)));
  }

  /** Lets time pass, backwards if it is negative, with one tick at the end. */
  void step(long ms) {
    nowMs += ms;
    if (ms < 0) {
      clockOf(driver).addAndGet(ms);
    }
    driver.advanceWallClockTime(Duration.ofMillis(Math.max(0, ms)));
  }

  /** The driver's own: it only ever lets time advance. */
  static AtomicLong clockOf(TopologyTestDriver driver) {
    return field(field(driver, "mockWallClockTime"), "timeMs");
  }

  /** What a restart would find queued, oldest first. */
  List<Record<byte[], byte[]>> stored() {
    commit();
    commit();
    return StoredQueue.of(stored).records();
  }

  /** Has the driver commit; what Kafka before 4.3 holds back for one more commit goes with it. */
  private void commit() {
    pipe(null, null, TestTopology.headers().add(COMMIT, null), 0);
    if (!driver.producedTopicNames().contains(TestTopology.CHANGELOG)) {
      return;
    }
    driver
        .createOutputTopic(
            TestTopology.CHANGELOG, new ByteArrayDeserializer(), new ByteArrayDeserializer())
        .readRecordsToList()
        .forEach(
            change -> {
              if (change.value() == null) {
                stored.remove(Bytes.wrap(change.key()));
              } else {
                stored.put(Bytes.wrap(change.key()), change.value());
              }
            });
  }

  private static final String COMMIT = "commit";

  /** In front of the shaper, hence initialised before it. */
  private final class Restore extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
    private FlowQueueStore queue;

    @Override
    public void init(ProcessorContext<byte[], byte[]> context) {
      super.init(context);
      queue = context.getStateStore(NAME + "-queue");
      KeyValueStore<Bytes, byte[]> innermost = innermost(queue);
      stored.forEach(innermost::put);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      if (record.headers().lastHeader(COMMIT) == null) {
        context().forward(record);
      }
    }
  }

  /** Below the layer that writes the changelog, as a restoration does it. */
  static KeyValueStore<Bytes, byte[]> innermost(FlowQueueStore queue) {
    Object store = field(queue, "inner");
    while (store instanceof WrappedStateStore<?, ?, ?> wrapper) {
      store = wrapper.wrapped();
    }
    @SuppressWarnings("unchecked") // it is one
    KeyValueStore<Bytes, byte[]> innermost = (KeyValueStore<Bytes, byte[]>) store;
    return innermost;
  }

  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"}) // the caller knows the type
  static <T> T field(Object owner, String name) {
    try {
      var field = owner.getClass().getDeclaredField(name);
      field.setAccessible(true);
      return (T) field.get(owner);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("The test must follow a renamed field", e);
    }
  }

  private static final class Step extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
    private final Consumer<Record<byte[], byte[]>> action;

    Step(Consumer<Record<byte[], byte[]>> action) {
      this.action = action;
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      action.accept(record);
      context().forward(record);
    }
  }

  @Override
  public void close() {
    if (driver == null) {
      return;
    }
    driver.close();
    driver = null;
    try (Stream<Path> files = Files.walk(stateDir)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
