package io.streamshaper;

import io.streamshaper.aqm.Codel;
import io.streamshaper.aqm.DropReason;
import io.streamshaper.aqm.FlowState;
import io.streamshaper.aqm.FqCodel;
import io.streamshaper.aqm.TokenBucket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Joins scheduler, store, clock and topology: one task, one thread. */
final class ShaperProcessor<K, V> implements Processor<K, V, K, V> {
  private static final Logger log = LoggerFactory.getLogger(ShaperProcessor.class);

  /** Flows passed over and records dropped before the clock is looked at again. */
  private static final int WORK_BUDGET = 256;

  private static final Map<DropReason, byte[]> REASONS = new EnumMap<>(DropReason.class);

  static {
    for (DropReason reason : DropReason.values()) {
      REASONS.put(reason, text(reason.name().toLowerCase(Locale.ROOT)));
    }
  }

  private final Shaper<K, V> shaper;
  private final ShaperOptions options;
  private final String forwardedName;
  private final String droppedName;
  private final boolean emitsDropped;

  private ProcessorContext<K, V> context;
  private final Scratch scratch = new Scratch();
  private String topic;
  private Serde<K> keySerde;
  private Serde<V> valueSerde;
  private ShaperMetrics.TaskMeters meters;
  private TaskStats stats;
  private FlowQueueStore store;
  private TaskClock clock;
  private Pace pace;
  private Cancellable ticks;
  private FqCodel<Bytes, QueuedRecord> scheduler;

  ShaperProcessor(Shaper<K, V> shaper) {
    this.shaper = shaper;
    this.options = shaper.options();
    forwardedName = shaper.forwardedName();
    droppedName = shaper.droppedName();
    emitsDropped = shaper.emitsDropped();
  }

  @Override
  public void init(ProcessorContext<K, V> context) {
    this.context = context;
    topic = context.applicationId() + "-" + shaper.storeName() + "-changelog";
    keySerde = shaper.keySerde(context);
    valueSerde = shaper.valueSerde(context);
    openMeters();
    scheduler = newScheduler();
    store = context.getStateStore(shaper.storeName());
    store.open(
        context.getStateStore(shaper.hookName()),
        isExactlyOnce(context.appConfigs()),
        ((Number) configured(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 30_000L)).longValue(),
        System.currentTimeMillis(),
        ThreadLocalRandom.current().nextLong(FlowQueueStore.SALTS),
        this::restore);
    scheduleTicks(); // first, since the clock can step back from its first look on
    clock =
        new TaskClock(
            context,
            options.time(),
            store.streamTimeMs(),
            options.plausibleAge().toMillis(),
            this::clockSteppedBack);
    pace = new Pace(newBucket(), options.target(), clock.elapsedNanos());
    publish();
    store.inquiries().open();
    log.info(
        "{} {}: {} records restored, {}",
        shaper.name(),
        context.taskId(),
        scheduler.packets(),
        options);
  }

  @Override
  public void process(Record<K, V> record) {
    Record<K, V> arrived = options.sourceHeaders() ? withSource(record) : record;
    clock.look();
    long lateMs = latenessMs(record.timestamp());
    long nowNanos = clock.elapsedNanosWith(record.timestamp());
    boolean idle = isIdle();
    boolean mayPass = idle && pace.mayPass(lateMs, nowNanos);
    boolean inBytes = !mayPass || shaper.costsBytes();
    byte[] key = inBytes ? serialize(keySerde, arrived, arrived.key()) : null;
    byte[] value = inBytes ? serialize(valueSerde, arrived, arrived.value()) : null;
    QueuedRecord.Terms terms = termsOf(arrived, key, value);
    if (idle && clock.nowNanosWith(record.timestamp()) > terms.expiresNanos()) {
      expire(arrived, key, terms, nowNanos);
    } else if (mayPass) {
      pass(arrived, key, terms, nowNanos);
    } else {
      enqueue(arrived, key, value, terms);
      if (pace.read(lateMs, clock.elapsedNanos())) {
        serve();
      }
    }
  }

  @Override
  public void close() {
    if (pace != null) {
      pace.close();
      store.inquiries().close();
      log.info(
          "{} {}: closed, {} records queued", shaper.name(), context.taskId(), scheduler.packets());
    }
    if (meters != null) {
      meters.close();
    }
  }

  private void punctuate(long timestampMs) {
    clock.look();
    try {
      store.inquiries().answer(this::describe);
      if (options.time() == ShaperOptions.Time.WALL && pace.tick(clock.elapsedNanos())) {
        serve();
      }
      store.tick(timestampMs);
    } finally {
      publish(); // what a step behind made of it is visible, too
    }
  }

  private void scheduleTicks() {
    ticks = context.schedule(Pace.TICK, PunctuationType.WALL_CLOCK_TIME, this::punctuate);
  }

  /**
   * The next tick would come only when the clock has caught up, since Kafka Streams has fixed its
   * time. Noticed as long as there is input; nothing that runs without input or ticks could.
   */
  private void clockSteppedBack() {
    stats.countClockStep();
    ticks.cancel();
    scheduleTicks();
  }

  private void restore(QueuedRecord queued) {
    scheduler.append(queued.flow(), queued);
    stats.countRestored();
  }

  private void publish() {
    stats.publish(scheduler, pace.tokens());
  }

  private QueueState describe(QueueQuery query) {
    List<FlowState<Bytes>> flows = new ArrayList<>(scheduler.fattest(query.fattest()));
    FlowState<Bytes> flow = query.flow() == null ? null : scheduler.flow(query.flow());
    if (flow != null && !flows.contains(flow)) {
      flows.add(flow);
    }
    return new QueueState(
        scheduler.packets(),
        scheduler.bytes(),
        scheduler.newFlows() + scheduler.oldFlows(),
        scheduler.droppingFlows(),
        flows.stream().map(this::describe).toList());
  }

  private QueueState.FlowQueue describe(FlowState<Bytes> flow) {
    long ageNanos = flow.packets() == 0 ? 0 : Math.max(0, clock.nowNanos() - flow.oldestNanos());
    return new QueueState.FlowQueue(
        flow.key(), flow.packets(), flow.bytes(), Duration.ofNanos(ageNanos), flow.dropping());
  }

  /** Whether a record that came and left now would leave the scheduler as it is. */
  private boolean isIdle() {
    if (scheduler.isEmpty() && !scheduler.isIdle()) {
      scheduler.dequeue(
          clock.nowNanos(), clock.elapsedNanos(), WORK_BUDGET); // finds nothing, and retires flows
    }
    return scheduler.isIdle();
  }

  /** The same decision as for a record that is queued and served at once, without the queue. */
  private void pass(Record<K, V> record, byte[] key, QueuedRecord.Terms terms, long nowNanos) {
    if (!shaper.isByKey()) {
      scheduler.weightOf(shaper.flowOf(record, topic, key)); // a bad one is refused now already
    }
    received(record);
    pace.pass(nowNanos);
    forward(record, terms.cost(), terms.sojournNanos(clock.nowNanos()));
  }

  /** The same for one that would not get further: after an outage there are millions of them. */
  private void expire(Record<K, V> record, byte[] key, QueuedRecord.Terms terms, long nowNanos) {
    Bytes flow = null;
    if (emitsDropped) {
      byte[] flowKey = key == null ? serialize(keySerde, record, record.key()) : key;
      flow = shaper.flowOf(record, topic, flowKey);
    }
    received(record);
    pace.pass(nowNanos);
    stats.countDropped(DropReason.EXPIRED);
    if (emitsDropped) {
      emitDropped(record, flow, terms.sojournNanos(clock.nowNanos()), DropReason.EXPIRED);
    }
  }

  /** Everything that can fail comes before anything changes. */
  private void enqueue(Record<K, V> record, byte[] key, byte[] value, QueuedRecord.Terms terms) {
    Bytes flow = shaper.flowOf(record, topic, key);
    QueuedRecord queued =
        QueuedRecord.resting(flow, store.nextSequence(), terms, record, key, value);
    scheduler.append(flow, queued);
    store.add(queued); // before stream time is saved, and with it where the queue begins
    received(record);
    enforceLimits();
  }

  /**
   * One batch may not suffice: many small records make no room for a large one, and a restart may
   * find more queued than its limits allow.
   */
  private void enforceLimits() {
    long endNanos = clock.elapsedNanos() + Pace.BOUND_NANOS;
    boolean over = scheduler.isOverLimit();
    while (over && clock.elapsedNanos() < endNanos) {
      over = scheduler.enforceLimits();
      clock.look();
    }
  }

  private void received(Record<K, V> record) {
    stats.countReceived();
    if (!isPlausible(record.timestamp(), clock.nowMsWith(record.timestamp()))) {
      stats.countImplausible();
    }
    if (clock.advancesWith(record.timestamp())) {
      clock.advance(record.timestamp());
      store.advanceStreamTime(record.timestamp());
    }
  }

  /** Forwards what may leave now, until the slice of time is over. */
  private void serve() {
    boolean emptied = false;
    pace.beginSlice(clock.elapsedNanos());
    while (!emptied && pace.mayServe(clock.elapsedNanos())) {
      QueuedRecord next = scheduler.dequeue(clock.nowNanos(), clock.elapsedNanos(), WORK_BUDGET);
      if (next != null) {
        forward(next);
      } else {
        emptied = scheduler.isEmpty();
      }
      clock.look();
    }
    pace.endSlice(scheduler.isEmpty(), clock.elapsedNanos());
  }

  private void forward(QueuedRecord queued) {
    Record<K, V> record = takeOut(queued);
    if (queued.marks() != 0) {
      record.headers().add(Shaper.MARK_HEADER, text(DropReason.CODEL));
      stats.countMarked();
    }
    forward(record, queued.cost(), queued.sojournNanos(clock.nowNanos()));
  }

  private void forward(Record<K, V> record, long cost, long sojournNanos) {
    stats.countForwarded(sojournNanos);
    pace.served(cost);
    context.forward(record, forwardedName);
  }

  private void drop(QueuedRecord queued, DropReason reason) {
    if (emitsDropped) {
      Record<K, V> record = takeOut(queued);
      stats.countDropped(reason);
      emitDropped(record, queued.flow(), queued.sojournNanos(clock.nowNanos()), reason);
    } else {
      store.remove(queued);
      stats.countDropped(reason);
    }
  }

  private void emitDropped(Record<K, V> record, Bytes flow, long sojournNanos, DropReason reason) {
    Record<K, V> dropped =
        new Record<>(record.key(), record.value(), clock.nowMs(), record.headers());
    dropped
        .headers()
        .add(Shaper.REASON_HEADER, text(reason))
        .add(Shaper.SOJOURN_HEADER, text(sojournNanos / QueuedRecord.NANOS_PER_MS))
        .add(Shaper.FLOW_HEADER, flow == null ? null : flow.get())
        .add(Shaper.TIMESTAMP_HEADER, text(record.timestamp()));
    context.forward(dropped, droppedName);
  }

  private Record<K, V> takeOut(QueuedRecord queued) {
    Record<K, V> record = read(queued);
    store.remove(queued);
    return record;
  }

  /**
   * What cannot be read stays stored, and comes back at the next start. Until then it is in memory
   * beside what the limits count: to drop it there is no record, to let it go would lose it.
   */
  private Record<K, V> read(QueuedRecord queued) {
    try {
      return queued.record(
          store.name(),
          store.valueOf(queued),
          topic,
          scratch,
          keySerde.deserializer(),
          valueSerde.deserializer());
    } catch (RuntimeException e) {
      stats.countUnreadable();
      throw new SerializationException(
          "store %s, key %s: must be a record that the serdes can read; it stays stored"
              .formatted(store.name(), HexFormat.of().formatHex(queued.storeKey().get())),
          e);
    }
  }

  private QueuedRecord.Terms termsOf(Record<K, V> record, byte[] key, byte[] value) {
    long nowMs = clock.nowMsWith(record.timestamp());
    boolean plausible = isPlausible(record.timestamp(), nowMs);
    boolean fromTimestamp =
        plausible && options.enqueueTime() == ShaperOptions.EnqueueTime.TIMESTAMP;
    long enqueueMs = fromTimestamp ? record.timestamp() : nowMs;
    return new QueuedRecord.Terms(
        enqueueMs,
        shaper.costOf(record, key, value),
        !shaper.isDroppable(record),
        shaper.expiresNanos(record, enqueueMs));
  }

  private boolean isPlausible(long timestampMs, long nowMs) {
    return Math.abs(nowMs - timestampMs) <= options.plausibleAge().toMillis();
  }

  /** How far reading is behind. What stream time decides must not depend on that. */
  private long latenessMs(long timestampMs) {
    long nowMs = clock.nowMs();
    boolean matters = options.time() == ShaperOptions.Time.WALL && isPlausible(timestampMs, nowMs);
    return matters ? nowMs - timestampMs : 0;
  }

  private <T> byte[] serialize(Serde<T> serde, Record<K, V> record, T data) {
    return data == null
        ? null
        : serde.serializer().serialize(topic, scratch.of(record.headers()), data);
  }

  private Record<K, V> withSource(Record<K, V> record) {
    return context
        .recordMetadata()
        .map(
            source -> {
              Record<K, V> copy =
                  new Record<>(record.key(), record.value(), record.timestamp(), record.headers());
              copy.headers()
                  .add(Shaper.SOURCE_TOPIC_HEADER, text(source.topic()))
                  .add(Shaper.SOURCE_PARTITION_HEADER, text(source.partition()))
                  .add(Shaper.SOURCE_OFFSET_HEADER, text(source.offset()));
              return copy;
            })
        .orElse(record);
  }

  private void openMeters() {
    if (shaper.metrics() == null) {
      stats = new TaskStats(nanos -> {});
    } else {
      meters = shaper.metrics().open(shaper.name(), context.taskId(), options.rate() != null);
      stats = meters.stats();
    }
  }

  private FqCodel<Bytes, QueuedRecord> newScheduler() {
    Codel codel =
        new Codel(
            options.target().toNanos(),
            options.interval().toNanos(),
            options.quantum(),
            options.ceiling() == null ? -1 : options.ceiling().toNanos(),
            true,
            -1);
    return new FqCodel<>(
        codel,
        options.quantum(),
        options.maxRecords(),
        options.maxBytes(),
        options.dropBatch(),
        new FlowHash(ThreadLocalRandom.current().nextLong()),
        flow -> shaper.weightOf(flow, topic),
        this::drop);
  }

  private TokenBucket newBucket() {
    long pollMs = ((Number) configured(StreamsConfig.POLL_MS_CONFIG, 100L)).longValue();
    if (options.rate() == null) {
      if (options.time() == ShaperOptions.Time.WALL && pollMs > 10) {
        log.warn(
            "{}: {} should be 5, was {}: queued records leave late while no new ones come",
            shaper.name(),
            StreamsConfig.POLL_MS_CONFIG,
            pollMs);
      }
      return null;
    }
    double betweenTicks = options.rate() * 2 * pollMs / 1000;
    double fallback = Math.max(1, Math.max(options.rate() / 20, betweenTicks));
    double burst = options.burst() == null ? fallback : options.burst();
    if (burst < betweenTicks && options.time() == ShaperOptions.Time.WALL) {
      log.warn(
          "{}: {} should be at least {} (rate {} x 2 x {} {} ms), was {}: tokens will be lost"
              + " between ticks",
          shaper.name(),
          ShaperOptions.BURST,
          (long) Math.ceil(betweenTicks),
          options.rate(),
          StreamsConfig.POLL_MS_CONFIG,
          pollMs,
          options.burst());
    }
    return new TokenBucket(options.rate(), burst);
  }

  private Object configured(String name, Object fallback) {
    Object value = context.appConfigs().get(name);
    return value == null ? fallback : value;
  }

  private static boolean isExactlyOnce(Map<String, Object> configs) {
    return StreamsConfig.EXACTLY_ONCE_V2.equals(
        configs.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG));
  }

  private static byte[] text(DropReason reason) {
    return REASONS.get(reason).clone();
  }

  private static byte[] text(long number) {
    return text(Long.toString(number));
  }

  private static byte[] text(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }
}
