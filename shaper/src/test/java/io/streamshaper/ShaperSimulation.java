package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Hours of traffic that nobody wrote down, all drawn from one seed: keys that come and go, bursts
 * and pauses, clocks that jump, timestamps that make no sense, extreme options, functions, serdes
 * and steps behind that fail, restarts with other options. Beside the shaper runs the simplest
 * model of what it promises, which says at once what was broken.
 */
final class ShaperSimulation implements AutoCloseable, RestartableShaper.Downstream {
  private static final long START_MS = TestTopology.START_MS;
  private static final long NANOS_PER_MS = 1_000_000;
  private static final long MINUTE_MS = 60_000;
  private static final long HOUR_MS = 60 * MINUTE_MS;
  private static final String ID = "id";

  /** What sums of fractions of tokens may lack. */
  private static final double ROUNDING = 1e-3;

  private static final String[] FLOWS = {null, "", "a", "b", "c", "d", "e", "hot", "heavy"};

  /** What goes wrong with a record, and where. */
  private enum Fault {
    NONE,
    KEY_SERIALIZER,
    VALUE_SERIALIZER,
    DESERIALIZER,
    CLASSIFIER,
    WEIGHT,
    COST,
    COST_OUT_OF_RANGE,
    EXPIRY,
    DROPPABLE,
    STEP_BEHIND,
    SINK_BEHIND
  }

  /** Where a record is. */
  private enum Place {
    /** A function failed on it: the exception handler had it, and the shaper knows nothing. */
    SKIPPED,
    QUEUED,
    /** It could not be read when it was to leave: it is stored, and comes back at a restart. */
    UNREADABLE,
    FORWARDED,
    DROPPED
  }

  /** A record and all that the model knows of it. */
  private static final class Item {
    int id;
    String flow;
    byte[] key;
    byte[] value;
    Headers headers;
    long timestampMs;
    Fault fault;
    boolean keep;
    Instant expiry;
    long ownCost;

    Place place = Place.QUEUED;
    boolean withSource;
    long cost;
    long enqueueMs;
    long expiresNanos;

    @Override
    public String toString() {
      return "record %d of flow %s (%s, at %d, cost %d, enqueued at %d, expires at %d ns)"
          .formatted(id, flow, fault, timestampMs, cost, enqueueMs, expiresNanos);
    }
  }

  private final Random random;
  private final ShaperOptions fixed;
  private final RestartableShaper task = new RestartableShaper(this, new Sink());
  private final boolean classified;
  private final boolean exactlyOnce;
  private final long cacheBytes;
  private final int faultsPerThousand;

  private final Map<Integer, Item> items = new LinkedHashMap<>();
  private final Map<String, Deque<Item>> queues = new HashMap<>();
  private final List<String> history = new ArrayList<>();

  /** The largest timestamp taken in, of all lives that follow stream time. */
  private long streamMs = -1;

  /** Of the task's present life. */
  private ShaperOptions options;

  private SimpleMeterRegistry registry;
  private final Map<String, Boolean> cut = new HashMap<>();
  private long latestMs;

  /** The wall clock went back, and the shaper has not read it since. */
  private boolean unnoticed;

  /** Time that passed, whatever the wall clock was set to. */
  private long elapsedMs;

  private boolean withinLimits;
  private int received;
  private int restored;
  private int forwarded;
  private int dropped;
  private int unreadable;
  private double burst;
  private double tokens;
  private long tokensAtMs;

  /** Of the call that is being made. */
  private Item arriving;

  private boolean overLimit;
  private boolean failed;

  ShaperSimulation(long seed) {
    this(seed, null);
  }

  /**
   * @param fixed the options of all lives; null: drawn for each
   */
  ShaperSimulation(long seed, ShaperOptions fixed) {
    random = new Random(seed);
    this.fixed = fixed;
    classified = random.nextBoolean();
    exactlyOnce = random.nextBoolean();
    cacheBytes = pick(0L, 1_000_000L);
    faultsPerThousand = random.nextInt(3) * 15;
  }

  void run() {
    run(3 + random.nextInt(6));
  }

  void run(int phases) {
    try {
      options = drawOptions();
      start(START_MS);
      for (int i = 0; i < phases; i++) {
        phase();
        if (random.nextInt(2) == 0) {
          restart();
        }
      }
      checkBooks();
      drain();
      checkBooks();
    } catch (RuntimeException | AssertionError e) {
      int from = Math.max(0, history.size() - 15);
      String last = String.join("\n", history.subList(from, history.size()));
      throw new AssertionError(e.getMessage() + "\n" + options + "\n" + last, e);
    }
  }

  private void phase() {
    int arrivals = 20 + random.nextInt(150);
    int gapMs = pick(0, 1, 5, 20, 200);
    int flows = 1 + random.nextInt(FLOWS.length);
    for (int i = 0; i < arrivals; i++) {
      String flow = FLOWS[random.nextInt(flows)];
      for (int left = random.nextInt(15) == 0 ? random.nextInt(60) : 1; left > 0; left--) {
        arrive(random.nextInt(4) == 0 ? FLOWS[random.nextInt(flows)] : flow);
      }
      arrive(flow); // whatever the clock shows, it is read before it jumps
      int dice = random.nextInt(300);
      if (dice == 0) {
        step(pick(-1L, -300L, -2000L, -MINUTE_MS, -HOUR_MS));
      } else if (dice == 1) {
        step(pick(1000L, 10_000L, MINUTE_MS, HOUR_MS, 26 * HOUR_MS));
      } else if (dice == 2) {
        jumpThereAndBack(pick(MINUTE_MS, HOUR_MS, 26 * HOUR_MS), flow);
      } else if (dice < 200 && gapMs > 0) {
        step(1 + random.nextInt(2 * gapMs));
      }
    }
    step(pick(10L, 100L, 1000L, 10 * MINUTE_MS, HOUR_MS));
  }

  /** As a wrong time server makes it, with input in between. */
  private void jumpThereAndBack(long ms, String flow) {
    step(ms);
    for (int i = random.nextInt(5); i > 0; i--) {
      arrive(flow);
      step(random.nextInt(20));
    }
    step(-ms);
    arrive(flow);
  }

  private void start(long startMs) {
    registry = new SimpleMeterRegistry();
    cut.clear();
    latestMs = startMs;
    unnoticed = false;
    elapsedMs = 0;
    withinLimits = false;
    received = 0;
    forwarded = 0;
    dropped = 0;
    unreadable = 0;
    queues.clear();
    for (Item item : items.values()) {
      if (item.place == Place.QUEUED || item.place == Place.UNREADABLE) {
        item.place = Place.QUEUED;
        queue(item.flow).addLast(item);
      }
    }
    restored = queued();
    if (options.rate() != null) {
      double fallback = Math.max(1, Math.max(options.rate() / 20, options.rate() * 2 * 5 / 1000));
      burst = options.burst() == null ? fallback : options.burst();
      tokens = burst;
      tokensAtMs = durationMs();
    }
    note("starts with " + restored + " records and " + options);
    task.start(
        shaper(),
        Map.of(
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
            exactlyOnce ? StreamsConfig.EXACTLY_ONCE_V2 : StreamsConfig.AT_LEAST_ONCE,
            StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG,
            cacheBytes,
            StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG,
            LogAndContinueProcessingExceptionHandler.class),
        startMs);
  }

  private void restart() {
    checkBooks();
    task.stop();
    if (random.nextBoolean()) {
      options = drawOptions();
    }
    start(task.nowMs() + pick(0L, 10L, MINUTE_MS, 24 * HOUR_MS, -2000L, -HOUR_MS));
  }

  /** Time passes, or jumps; a tick follows if it is due. */
  private void step(long ms) {
    note("%d: time passes, %d ms".formatted(task.nowMs(), ms));
    latestMs = Math.max(latestMs, task.nowMs() + ms);
    unnoticed |= ms < 0;
    elapsedMs += Math.max(0, ms);
    task.step(ms);
  }

  private void drain() {
    if (isStream() || (options.rate() != null && options.rate() < 0.001)) {
      return; // time alone, or a time that ends, does not empty the queue
    }
    long ms = Math.max(20, latestMs - task.nowMs());
    for (int ticks = 0; queued() > 0; ticks++) {
      assertThat(ticks).as("ticks without an end, %d queued", queued()).isLessThan(20_000);
      int before = queued();
      step(ms);
      ms = queued() < before ? ms : Math.min(2 * ms, 10_000 * HOUR_MS);
    }
  }

  // What comes in.

  private void arrive(String flow) {
    Item item = new Item();
    item.id = items.size();
    item.fault = drawFault();
    item.flow = item.fault == Fault.WEIGHT && classified ? "bad" : flow;
    item.key = TestTopology.bytes(classified ? flow + random.nextInt(5) : flow);
    item.value = drawBytes();
    item.timestampMs = drawTimestamp();
    item.keep = random.nextInt(8) == 0;
    item.expiry = drawExpiry();
    item.ownCost =
        item.fault == Fault.COST_OUT_OF_RANGE
            ? pick(0L, -1L, 1024 * options.quantum() + 1, Long.MAX_VALUE)
            : pick(1L, 1L, 1L, 1L, 2L, Math.min(50, 1024 * options.quantum()));
    item.headers = drawHeaders(item.id);
    item.withSource = options.sourceHeaders();
    items.put(item.id, item);

    long streamBefore = streamMs;
    takeIn(item); // first, since it can leave within the call
    note("%d: %s arrives".formatted(task.nowMs(), item));
    arriving = item;
    overLimit = false;
    failed = false;
    task.pipe(item.key, item.value, new Scratch().of(item.headers), item.timestampMs);
    arriving = null;
    unnoticed &= isStream(); // which looks at the wall clock only now and then
    if (item.place == Place.SKIPPED) {
      queue(item.flow).removeLastOccurrence(item);
      streamMs = streamBefore;
    } else {
      received++;
      withinLimits = !failed; // on a drop that fails, the next arrival goes on
      if (withinLimits) {
        assertThat(queued()).as("records queued").isLessThanOrEqualTo(options.maxRecords());
      }
    }
  }

  private void takeIn(Item item) {
    if (isStream()
        && item.timestampMs > streamMs
        && item.timestampMs - task.nowMs() <= options.plausibleAge().toMillis()) {
      streamMs = item.timestampMs;
    }
    long ageMs = Math.abs(nowMs() - item.timestampMs);
    boolean own =
        ageMs <= options.plausibleAge().toMillis()
            && options.enqueueTime() == ShaperOptions.EnqueueTime.TIMESTAMP;
    item.enqueueMs = own ? item.timestampMs : nowMs();
    item.cost = options.cost() == ShaperOptions.Cost.RECORDS ? item.ownCost : bytesOf(item);
    long byAge =
        options.maxAge() == null
            ? Long.MAX_VALUE
            : (item.enqueueMs + options.maxAge().toMillis()) * NANOS_PER_MS;
    item.expiresNanos = Math.min(byAge, nanosOf(item.expiry));
    queue(item.flow).addLast(item);
  }

  private long bytesOf(Item item) {
    long bytes = item.key == null ? 0 : item.key.length;
    bytes += item.value == null ? 0 : item.value.length;
    return Math.min(Math.max(1, bytes), 1024 * options.quantum());
  }

  private static long nanosOf(Instant expiry) {
    if (expiry == null || expiry.equals(Instant.MAX)) {
      return Long.MAX_VALUE;
    }
    return expiry.equals(Instant.MIN) ? Long.MIN_VALUE : expiry.toEpochMilli() * NANOS_PER_MS;
  }

  private Fault drawFault() {
    Fault[] faults = Fault.values();
    boolean none = random.nextInt(1000) >= faultsPerThousand;
    return none ? Fault.NONE : faults[random.nextInt(faults.length)];
  }

  private byte[] drawBytes() {
    int size = random.nextInt(40) == 0 ? random.nextInt(5000) : random.nextInt(60);
    byte[] bytes = new byte[size];
    random.nextBytes(bytes);
    return random.nextInt(20) == 0 ? null : bytes;
  }

  private long drawTimestamp() {
    long nowMs = task.nowMs();
    return switch (random.nextInt(60)) {
      case 0 -> 0;
      case 1 -> nowMs / 1000;
      case 2 -> nowMs * 1000;
      case 3 -> nowMs + HOUR_MS;
      case 4 -> nowMs + 1000 * 24 * HOUR_MS;
      case 5 -> Long.MAX_VALUE - random.nextInt(2);
      case 6 -> nowMs - 24 * HOUR_MS;
      case 7, 8, 9, 10, 11 -> nowMs - random.nextInt(2000);
      case 12 -> nowMs + random.nextInt(2000);
      default -> nowMs;
    };
  }

  private Instant drawExpiry() {
    return switch (random.nextInt(30)) {
      case 0 -> Instant.MAX;
      case 1 -> Instant.MIN;
      case 2 -> Instant.ofEpochMilli(task.nowMs() + random.nextInt(3000));
      default -> null;
    };
  }

  /** With names that are the shaper's own, too: they are the user's all the same. */
  private Headers drawHeaders(int id) {
    Headers headers = TestTopology.headers().add(ID, TestTopology.bytes("" + id));
    if (random.nextInt(10) == 0) {
      headers.add(pick(Shaper.REASON_HEADER, Shaper.MARK_HEADER, "", "\u00e9"), null);
      headers.add(Shaper.SOURCE_TOPIC_HEADER, drawBytes());
    }
    return headers;
  }

  // What the user decides.

  private ShaperOptions drawOptions() {
    if (fixed != null) {
      return fixed;
    }
    try {
      return ShaperOptions.from(drawProperties());
    } catch (ConfigException twoThatContradictEachOther) {
      return drawOptions();
    }
  }

  private Map<String, Object> drawProperties() {
    Map<String, Object> properties = new HashMap<>();
    properties.put("shaper.rate", pick(null, null, 0.01, 1.0, 30.0, 100.0, 1000.0, 1e14));
    properties.put("shaper.burst", pick(null, null, null, 1L, 5L, 1000L, Long.MAX_VALUE));
    long targetMs = pick(0L, 1L, 5L, 100L, 24 * HOUR_MS);
    properties.put("shaper.target.ms", targetMs);
    properties.put("shaper.interval.ms", targetMs + pick(1L, 20L, 1000L, 240 * HOUR_MS));
    properties.put("shaper.ceiling.ms", pick(null, -1L, targetMs, 10 * targetMs));
    properties.put("shaper.max.age.ms", pick(null, null, null, 1L, 100L, 5000L, HOUR_MS));
    properties.put("shaper.plausible.age.ms", pick(null, null, HOUR_MS, 36_500 * 24 * HOUR_MS));
    properties.put("shaper.max.records", pick(null, 1, 5, 30, 100, Integer.MAX_VALUE));
    properties.put("shaper.max.bytes", pick(null, null, 1L, 200L, 5000L, 50_000L, Long.MAX_VALUE));
    properties.put("shaper.drop.batch", pick(null, 1, 2, 10_000));
    properties.put("shaper.cost", pick(null, null, "bytes"));
    properties.put("shaper.quantum", pick(null, null, 1L, 3L, 100L, (long) Integer.MAX_VALUE));
    properties.put("shaper.time", pick(null, null, "stream"));
    properties.put("shaper.enqueue.time", pick(null, null, "arrival"));
    properties.put("shaper.store", random.nextInt(30) == 0 ? "rocksdb" : null);
    properties.put("shaper.source.headers", pick(null, true));
    return properties;
  }

  private Shaper<byte[], byte[]> shaper() {
    Shaper<byte[], byte[]> shaper =
        Shaper.<byte[], byte[]>named(TestTopology.NAME)
            .options(options)
            .serdes(serde(Fault.KEY_SERIALIZER), serde(Fault.VALUE_SERIALIZER))
            .metrics(ShaperMetrics.in(registry))
            .expiresAt(record -> unless(Fault.EXPIRY, record.headers()).expiry)
            .droppable(record -> !unless(Fault.DROPPABLE, record.headers()).keep);
    if (options.cost() == ShaperOptions.Cost.RECORDS) {
      shaper.costBy(record -> costOf(unless(Fault.COST, record.headers())));
    }
    if (classified) {
      shaper.flowBy(
          record -> unless(Fault.CLASSIFIER, record.headers()).flow,
          Serdes.String(),
          this::weightOf);
    }
    return shaper;
  }

  private static long costOf(Item item) {
    if (item.fault == Fault.COST_OUT_OF_RANGE) {
      item.place = Place.SKIPPED;
    }
    return item.ownCost;
  }

  private int weightOf(String flow) {
    if (flow.equals("bad")) {
      arriving.place = Place.SKIPPED;
      throw new IllegalStateException("weight");
    }
    return weight(flow);
  }

  private int weight(String flow) {
    return classified && "heavy".equals(flow) ? Integer.MAX_VALUE : 1;
  }

  private Item unless(Fault fault, Headers headers) {
    Item item = item(headers);
    if (item.fault == fault) {
      item.place = Place.SKIPPED;
      throw new IllegalStateException(fault.name());
    }
    return item;
  }

  private Item item(Headers headers) {
    return items.get(Integer.parseInt(TestTopology.text(headers.toArray()[0].value())));
  }

  private Serde<byte[]> serde(Fault fault) {
    return Serdes.serdeFrom(
        new Serializer<>() {
          @Override
          public byte[] serialize(String topic, byte[] data) {
            throw new AssertionError("must be told of the headers");
          }

          @Override
          public byte[] serialize(String topic, Headers headers, byte[] data) {
            unless(fault, headers);
            headers.add("left by the serializer", data);
            return data;
          }
        },
        new Deserializer<>() {
          @Override
          public byte[] deserialize(String topic, byte[] data) {
            throw new AssertionError("must be told of the headers");
          }

          @Override
          public byte[] deserialize(String topic, Headers headers, byte[] data) {
            Item item = item(headers);
            if (item.fault == Fault.DESERIALIZER) {
              cannotBeRead(item);
              throw new IllegalStateException(item.fault.name());
            }
            return data;
          }
        });
  }

  // What comes out.

  private void cannotBeRead(Item item) {
    note("%s cannot be read".formatted(item));
    take(item, Place.UNREADABLE);
    cut.remove(item.flow);
    unreadable++;
    failed = true;
  }

  @Override
  public void forwarded(Record<byte[], byte[]> record) {
    Item item = leave(record, Place.FORWARDED);
    forwarded++;
    List<Header> added = added(item, record);
    if (!added.isEmpty()) {
      assertThat(added).extracting(Header::key).containsExactly(Shaper.MARK_HEADER);
      assertThat(added.get(0).value()).isEqualTo(TestTopology.bytes("codel"));
      assertThat(item.keep).as("marked, hence not droppable").isTrue();
    }
    assertThat(record.timestamp()).as("timestamp").isEqualTo(item.timestampMs);
    assertThat(nowMs() * NANOS_PER_MS).as("expiry").isLessThanOrEqualTo(item.expiresNanos);
    checkCeiling(item);
    checkRate(item);
    cut.put(item.flow, false);
    failBehind(item);
  }

  /** What follows a cut is young enough, or must not be dropped, or too few are left. */
  private void checkCeiling(Item item) {
    if (options.ceiling() != null
        && cut.getOrDefault(item.flow, false)
        && !item.keep
        && backlog(item.flow) > options.quantum()) {
      assertThat(sojournMs(item))
          .as("sojourn of what is forwarded while its flow is being cut")
          .isLessThanOrEqualTo(options.ceiling().toMillis());
    }
  }

  /** The same as: in no window more than the burst and the rate. */
  private void checkRate(Item item) {
    if (options.rate() == null) {
      return;
    }
    if (durationMs() > tokensAtMs) {
      tokens = Math.min(burst, tokens + options.rate() * (durationMs() - tokensAtMs) / 1000);
      tokensAtMs = durationMs();
    }
    assertThat(tokens).as("tokens when a record leaves").isGreaterThanOrEqualTo(1 - ROUNDING);
    tokens -= item.cost;
  }

  @Override
  public void dropped(Record<byte[], byte[]> record) {
    long before = backlog(item(record.headers()).flow);
    int queuedBefore = queued();
    Item item = leave(record, Place.DROPPED);
    dropped++;
    List<Header> added = added(item, record);
    assertThat(added)
        .extracting(Header::key)
        .containsExactly(
            Shaper.REASON_HEADER,
            Shaper.SOJOURN_HEADER,
            Shaper.FLOW_HEADER,
            Shaper.TIMESTAMP_HEADER);
    byte[] flow = classified ? TestTopology.bytes(item.flow) : item.key;
    assertThat(TestTopology.text(added.get(1).value())).isEqualTo("" + sojournMs(item));
    assertThat(added.get(2).value()).isEqualTo(flow);
    assertThat(TestTopology.text(added.get(3).value())).isEqualTo("" + item.timestampMs);
    assertThat(record.timestamp()).as("time of the drop").isEqualTo(nowMs());

    String reason = TestTopology.text(added.get(0).value());
    long targetMs = options.target().toMillis();
    switch (reason) {
      case "expired" ->
          assertThat(nowMs() * NANOS_PER_MS).as("expiry").isGreaterThan(item.expiresNanos);
      case "codel" -> checkStanding(item, targetMs);
      case "ceiling" -> checkStanding(item, options.ceiling().toMillis() + 1);
      case "overlimit" -> checkOverlimit(item, before, queuedBefore);
      default -> throw new AssertionError("unknown reason " + reason);
    }
    cut.put(item.flow, reason.equals("codel") || reason.equals("ceiling"));
    failBehind(item);
  }

  private void checkStanding(Item item, long leastMs) {
    assertThat(item.keep).as("dropped, hence droppable").isFalse();
    assertThat(sojournMs(item)).as("sojourn").isGreaterThanOrEqualTo(leastMs);
    assertThat(backlog(item.flow)).as("backlog").isGreaterThan(options.quantum());
  }

  private void checkOverlimit(Item item, long backlog, int queuedBefore) {
    assertThat(arriving).as("what arrives over a limit").isNotNull();
    if (!overLimit) {
      overLimit = true;
      queues.forEach(
          (flow, queue) ->
              assertThat(1.0 * backlog / weight(item.flow))
                  .as("backlog by weight, against flow " + flow)
                  .isGreaterThanOrEqualTo((1 - 1e-9) * backlog(flow) / weight(flow)));
      if (options.maxBytes() == Long.MAX_VALUE) {
        assertThat(queuedBefore).as("records queued").isGreaterThan(options.maxRecords());
      }
    }
  }

  private Item leave(Record<byte[], byte[]> record, Place place) {
    Item item = item(record.headers());
    note("%d: record %d is %s".formatted(nowMs(), item.id, place));
    take(item, place);
    assertThat(record.key()).as("key").isEqualTo(item.key);
    assertThat(record.value()).as("value").isEqualTo(item.value);
    return item;
  }

  private void take(Item item, Place place) {
    assertThat(item.place).as("place of " + item).isEqualTo(Place.QUEUED);
    assertThat(queue(item.flow).pollFirst()).as("oldest of its flow").isSameAs(item);
    item.place = place;
  }

  /** Behind the record's own headers, which must be there as they were, and its source. */
  private static List<Header> added(Item item, Record<byte[], byte[]> record) {
    List<Header> headers = Arrays.asList(record.headers().toArray());
    List<Header> own = Arrays.asList(item.headers.toArray());
    int source = item.withSource ? 3 : 0;
    assertThat(headers.subList(0, own.size())).as("own headers").isEqualTo(own);
    return headers.subList(own.size() + source, headers.size());
  }

  private void failBehind(Item item) {
    if (item.fault == Fault.STEP_BEHIND) {
      throw new IllegalStateException("step behind");
    }
  }

  private final class Sink implements Serializer<byte[]> {
    @Override
    public byte[] serialize(String topic, byte[] data) {
      throw new AssertionError("must be told of the headers");
    }

    @Override
    public byte[] serialize(String topic, Headers headers, byte[] data) {
      if (item(headers).fault == Fault.SINK_BEHIND) {
        failed = true;
        throw new IllegalStateException("sink behind");
      }
      return data;
    }
  }

  // The books.

  /** In = forwarded + dropped + queued: in the changelog, in the meters. */
  private void checkBooks() {
    List<Item> kept =
        items.values().stream()
            .filter(item -> item.place == Place.QUEUED || item.place == Place.UNREADABLE)
            .toList();
    List<Record<byte[], byte[]>> stored = task.stored();
    assertThat(stored.stream().map(record -> item(record.headers()).id))
        .as("stored, in the order of arrival")
        .containsExactlyElementsOf(kept.stream().map(item -> item.id).toList());
    for (Record<byte[], byte[]> record : stored) {
      Item item = item(record.headers());
      assertThat(record.key()).as("key").isEqualTo(item.key);
      assertThat(record.value()).as("value").isEqualTo(item.value);
      assertThat(record.timestamp()).as("timestamp").isEqualTo(item.timestampMs);
      assertThat(added(item, record)).as("added headers").isEmpty();
    }
    checkMeters();
  }

  private void checkMeters() {
    assertThat(records("received")).as("received").isEqualTo(received);
    assertThat(records("restored")).as("restored").isEqualTo(restored);
    assertThat(records("forwarded")).as("forwarded").isEqualTo(forwarded);
    assertThat(records("dropped")).as("dropped").isEqualTo(dropped);
    assertThat(records("unreadable")).as("unreadable").isEqualTo(unreadable);
    assertThat(received + restored)
        .as("the law")
        .isEqualTo(forwarded + dropped + unreadable + queued());
    if (unnoticed && latestMs > task.nowMs()) {
      return; // no tick until the clock is where it was
    }
    step(TestTopology.TICK_MS); // which publishes, even if a step behind fails
    assertThat(gauge("shaper.queued.records")).as("queued").isEqualTo(queued());
    assertThat(gauge("shaper.flow.backlog.max"))
        .as("largest backlog")
        .isLessThanOrEqualTo(queues.keySet().stream().mapToLong(this::backlog).max().orElse(0));
    if (withinLimits) {
      assertThat(gauge("shaper.queued.bytes")).isLessThanOrEqualTo(options.maxBytes());
    }
  }

  private double records(String outcome) {
    return registry.find("shaper.records").tag("outcome", outcome).functionCounters().stream()
        .mapToDouble(FunctionCounter::count)
        .sum();
  }

  private long gauge(String name) {
    return (long) registry.get(name).gauge().value();
  }

  private boolean isStream() {
    return options.time() == ShaperOptions.Time.STREAM;
  }

  private long nowMs() {
    return Math.max(0, isStream() ? streamMs : task.nowMs());
  }

  private long durationMs() {
    return isStream() ? nowMs() : elapsedMs;
  }

  private long sojournMs(Item item) {
    return Math.max(0, nowMs() - item.enqueueMs);
  }

  private Deque<Item> queue(String flow) {
    return queues.computeIfAbsent(flow, f -> new ArrayDeque<>());
  }

  private int queued() {
    return queues.values().stream().mapToInt(Deque::size).sum();
  }

  private long backlog(String flow) {
    return queue(flow).stream().mapToLong(item -> item.cost).sum();
  }

  private void note(String what) {
    history.add(what);
  }

  @SafeVarargs
  private <T> T pick(T... choices) {
    return choices[random.nextInt(choices.length)];
  }

  @Override
  public void close() {
    task.close();
  }
}
