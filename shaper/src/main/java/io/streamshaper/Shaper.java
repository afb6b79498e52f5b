package io.streamshaper;

import io.streamshaper.aqm.Packet;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;
import java.util.function.ToLongFunction;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;

/**
 * A step of a topology that queues records by flow, serves the flows fairly (RFC 8290), drops what
 * has gone stale (RFC 8289) and loses nothing else. Brings its own store.
 *
 * <p>With the DSL, {@link #shape} is all there is to do. With the Processor API, add it as any
 * processor and connect two children, {@code NAME-forwarded} and {@code NAME-dropped}.
 *
 * <p>Configure it before it is used. The functions are called on stream threads; one that throws
 * leaves the decision to Kafka Streams' processing exception handler, and the queue as it was.
 */
public final class Shaper<K, V> implements ProcessorSupplier<K, V, K, V> {
  /** Header of a dropped record: codel, ceiling, expired or overlimit. */
  public static final String REASON_HEADER = "shaper.reason";

  /** Header of a dropped record: its sojourn in milliseconds, as decimal text. */
  public static final String SOJOURN_HEADER = "shaper.sojourn.ms";

  /** Header of a dropped record: its serialised flow; null for records without a key. */
  public static final String FLOW_HEADER = "shaper.flow";

  /** Header of a dropped record: its own timestamp in milliseconds, as decimal text. */
  public static final String TIMESTAMP_HEADER = "shaper.timestamp.ms";

  /** Header of a forwarded record that would have been dropped, were it droppable. */
  public static final String MARK_HEADER = "shaper.mark";

  /** Header with the topic that a record came from, if asked for. */
  public static final String SOURCE_TOPIC_HEADER = "shaper.source.topic";

  /** Header with the partition that a record came from, if asked for, as decimal text. */
  public static final String SOURCE_PARTITION_HEADER = "shaper.source.partition";

  /** Header with the offset that a record had, if asked for, as decimal text. */
  public static final String SOURCE_OFFSET_HEADER = "shaper.source.offset";

  /** Bounds the rounds that a flow waits for the credit of one record. */
  private static final long MAX_QUANTA = 1024;

  private static final int DEFAULT_WEIGHT = 1;

  private final String name;
  private ShaperOptions options = ShaperOptions.defaults();
  private Serde<K> keySerde;
  private Serde<V> valueSerde;
  private Flows<K, V, ?> flows;
  private ToLongFunction<? super Record<K, V>> cost;
  private Function<? super Record<K, V>, Instant> expiry = record -> null;
  private Predicate<? super Record<K, V>> droppable = record -> true;
  private ShaperMetrics metrics;
  private Map<String, String> changelogConfig = Map.of();
  private Set<StoreBuilder<?>> stores;

  /** Whether what is dropped goes anywhere: to make records for nobody is dear after an outage. */
  private boolean emitsDropped = true;

  private Shaper(String name) {
    this.name = name;
  }

  /**
   * A shaper with all defaults.
   *
   * @param name of the topology's node, and the beginning of its children's, its stores' and its
   *     changelog's names: to change it is to lose what is queued
   */
  public static <K, V> Shaper<K, V> named(String name) {
    if (!name.matches("[a-zA-Z0-9._-]{1,200}")) {
      throw new IllegalArgumentException(
          "name must be 1 to 200 letters, digits, '.', '_' or '-', was '" + name + "'");
    }
    return new Shaper<>(name);
  }

  /** How records are written while queued; default: the application's default serdes. */
  public Shaper<K, V> serdes(Serde<K> key, Serde<V> value) {
    keySerde = Objects.requireNonNull(key, "key serde");
    valueSerde = Objects.requireNonNull(value, "value serde");
    return this;
  }

  /** What else the user decides. */
  public Shaper<K, V> options(ShaperOptions options) {
    this.options = Objects.requireNonNull(options, "options");
    return this;
  }

  /**
   * Which flow a record belongs to; default: its key's. A null flow is a flow as any other.
   *
   * @param serde makes the flow's identity: equal bytes are the same flow, also after a restart
   */
  public <F> Shaper<K, V> flowBy(
      Function<? super Record<K, V>, ? extends F> classifier, Serde<F> serde) {
    return flowBy(classifier, serde, flow -> DEFAULT_WEIGHT);
  }

  /**
   * Which flow a record belongs to, and a flow's weight: its multiple of an equal share.
   *
   * @param weight at least 1; asked when a flow becomes known; the null flow has weight 1
   */
  public <F> Shaper<K, V> flowBy(
      Function<? super Record<K, V>, ? extends F> classifier,
      Serde<F> serde,
      ToIntFunction<? super F> weight) {
    flows =
        new Flows<>(
            Objects.requireNonNull(classifier, "classifier"),
            Objects.requireNonNull(serde, "flow serde"),
            Objects.requireNonNull(weight, "weight"));
    return this;
  }

  /** What a record costs, from 1 to 1024 quanta; asked once, on arrival. */
  public Shaper<K, V> costBy(ToLongFunction<? super Record<K, V>> cost) {
    this.cost = Objects.requireNonNull(cost, "cost");
    return this;
  }

  /**
   * The last instant at which a record is worth anything; null: it does not expire. The maximum age
   * of the options holds all the same. Asked once, on arrival; what has expired is dropped when its
   * turn comes.
   */
  public Shaper<K, V> expiresAt(Function<? super Record<K, V>, Instant> expiry) {
    this.expiry = Objects.requireNonNull(expiry, "expiry");
    return this;
  }

  /**
   * Whether CoDel and the ceiling may drop a record; others are marked in its place. Expiry and the
   * limits spare nobody. Asked once, on arrival.
   */
  public Shaper<K, V> droppable(Predicate<? super Record<K, V>> droppable) {
    this.droppable = Objects.requireNonNull(droppable, "droppable");
    return this;
  }

  /** Where to show what the shaper does; default: nowhere. */
  public Shaper<K, V> metrics(ShaperMetrics metrics) {
    this.metrics = Objects.requireNonNull(metrics, "metrics");
    return this;
  }

  /** Topic settings of the changelog, over the ones that suit a queue. */
  public Shaper<K, V> changelog(Map<String, String> topicConfig) {
    changelogConfig = Map.copyOf(topicConfig);
    return this;
  }

  /** Puts the shaper behind a stream. */
  public Shaped<K, V> shape(KStream<K, V> stream) {
    emitsDropped = false;
    return new Shaped<>(this, stream.process(this, Named.as(name)));
  }

  /** A processor for one task. */
  @Override
  public Processor<K, V, K, V> get() {
    return new ShaperProcessor<>(this);
  }

  @Override
  public Set<StoreBuilder<?>> stores() {
    if (stores == null) {
      Map<String, String> config = new HashMap<>(QUEUE_CHANGELOG);
      config.putAll(changelogConfig);
      stores =
          Set.of(
              FlowQueueStore.builder(storeName(), options.store(), config),
              CommitHook.builder(hookName()));
    }
    return stores;
  }

  /**
   * A queue's changelog is mostly tombstones: small segments, cleaned early, keep restoring fast.
   * Its records carry the timestamps of other people's records, whatever those are.
   */
  private static final Map<String, String> QUEUE_CHANGELOG =
      Map.of(
          TopicConfig.SEGMENT_MS_CONFIG,
          "600000",
          TopicConfig.SEGMENT_BYTES_CONFIG,
          Integer.toString(16 * 1024 * 1024),
          TopicConfig.DELETE_RETENTION_MS_CONFIG,
          "60000",
          TopicConfig.MIN_CLEANABLE_DIRTY_RATIO_CONFIG,
          "0.1",
          TopicConfig.MESSAGE_TIMESTAMP_BEFORE_MAX_MS_CONFIG,
          Long.toString(Long.MAX_VALUE),
          TopicConfig.MESSAGE_TIMESTAMP_AFTER_MAX_MS_CONFIG,
          Long.toString(Long.MAX_VALUE));

  String name() {
    return name;
  }

  ShaperOptions options() {
    return options;
  }

  /** Null: none. */
  ShaperMetrics metrics() {
    return metrics;
  }

  /** Somebody takes what is dropped. */
  void emitDropped() {
    emitsDropped = true;
  }

  boolean emitsDropped() {
    return emitsDropped;
  }

  String storeName() {
    return name + "-queue";
  }

  String hookName() {
    return name + "-commit-hook";
  }

  String forwardedName() {
    return name + "-forwarded";
  }

  String droppedName() {
    return name + "-dropped";
  }

  @SuppressWarnings("unchecked") // the application's default serdes are for whatever it says
  Serde<K> keySerde(ProcessorContext<?, ?> context) {
    return keySerde != null ? keySerde : (Serde<K>) context.keySerde();
  }

  @SuppressWarnings("unchecked") // the application's default serdes are for whatever it says
  Serde<V> valueSerde(ProcessorContext<?, ?> context) {
    return valueSerde != null ? valueSerde : (Serde<V>) context.valueSerde();
  }

  /** Whether a record's flow is its key's. */
  boolean isByKey() {
    return flows == null;
  }

  /**
   * The serialised flow of a record.
   *
   * @param key the serialised key, may be null if flows go by something else
   */
  Bytes flowOf(Record<K, V> record, String topic, byte[] key) {
    return flows == null ? identity(key) : flows.of(record, topic);
  }

  /**
   * Bytes of one's own: a serializer may reuse its array, or return a key that is changed later.
   */
  private static Bytes identity(byte[] serialized) {
    return serialized == null ? null : Bytes.wrap(serialized.clone());
  }

  int weightOf(Bytes flow, String topic) {
    return flow == null || flows == null ? DEFAULT_WEIGHT : flows.weightOf(flow, topic);
  }

  boolean costsBytes() {
    return cost == null && options.cost() == ShaperOptions.Cost.BYTES;
  }

  long costOf(Record<K, V> record, byte[] key, byte[] value) {
    long most = MAX_QUANTA * options.quantum();
    if (costsBytes()) {
      long bytes = key == null ? 0 : key.length;
      bytes += value == null ? 0 : value.length;
      return Math.min(Math.max(1, bytes), most);
    }
    if (cost == null) {
      return 1;
    }
    long recordCost = cost.applyAsLong(record);
    if (recordCost < 1 || recordCost > most) {
      throw new IllegalArgumentException(
          "cost must be between 1 and 1024 quanta (" + most + "), was " + recordCost);
    }
    return recordCost;
  }

  boolean isDroppable(Record<K, V> record) {
    return droppable.test(record);
  }

  long expiresNanos(Record<K, V> record, long enqueueMs) {
    Instant instant = expiry.apply(record);
    long byInstant = instant == null ? Packet.NEVER : nanosOf(instant);
    long byAge =
        options.maxAge() == null
            ? Packet.NEVER
            : enqueueMs * QueuedRecord.NANOS_PER_MS + options.maxAge().toNanos();
    return Math.min(byInstant, byAge);
  }

  private static long nanosOf(Instant instant) {
    try {
      return Math.addExact(
          Math.multiplyExact(instant.getEpochSecond(), 1_000_000_000L), instant.getNano());
    } catch (ArithmeticException outOfRange) {
      return instant.isAfter(Instant.EPOCH) ? Packet.NEVER : Long.MIN_VALUE;
    }
  }

  /** A classification, with the type of its flows. */
  private record Flows<K, V, F>(
      Function<? super Record<K, V>, ? extends F> classifier,
      Serde<F> serde,
      ToIntFunction<? super F> weight) {

    Bytes of(Record<K, V> record, String topic) {
      F flow = classifier.apply(record);
      return flow == null ? null : identity(serde.serializer().serialize(topic, flow));
    }

    int weightOf(Bytes flow, String topic) {
      return weight.applyAsInt(serde.deserializer().deserialize(topic, flow.get()));
    }
  }
}
