package io.streamshaper;

import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigException;

/**
 * What the user decides: immutable and valid by construction, from code ({@link #builder}) or from
 * properties ({@link #from}). One {@link ConfigDef} gives names, defaults, rules and documentation.
 * Thread-safe.
 */
public final class ShaperOptions {
  /** Which clock decides: the present, or the largest record timestamp seen. */
  public enum Time {
    WALL,
    STREAM
  }

  /** From when a record's sojourn counts: its own timestamp, or its arrival at the shaper. */
  public enum EnqueueTime {
    TIMESTAMP,
    ARRIVAL
  }

  /** Where the flow queues are held between commits; a changelog backs both. */
  public enum Store {
    MEMORY,
    ROCKSDB
  }

  /** What a record costs, unless a cost function says otherwise. */
  public enum Cost {
    RECORDS,
    BYTES
  }

  static final String PREFIX = "shaper.";
  static final String RATE = PREFIX + "rate";
  static final String BURST = PREFIX + "burst";
  static final String TARGET_MS = PREFIX + "target.ms";
  static final String INTERVAL_MS = PREFIX + "interval.ms";
  static final String CEILING_MS = PREFIX + "ceiling.ms";
  static final String MAX_AGE_MS = PREFIX + "max.age.ms";
  static final String PLAUSIBLE_AGE_MS = PREFIX + "plausible.age.ms";
  static final String MAX_RECORDS = PREFIX + "max.records";
  static final String MAX_BYTES = PREFIX + "max.bytes";
  static final String DROP_BATCH = PREFIX + "drop.batch";
  static final String COST = PREFIX + "cost";
  static final String QUANTUM = PREFIX + "quantum";
  static final String TIME = PREFIX + "time";
  static final String ENQUEUE_TIME = PREFIX + "enqueue.time";
  static final String STORE = PREFIX + "store";
  static final String SOURCE_HEADERS = PREFIX + "source.headers";

  /** The value of {@code shaper.ceiling.ms} that turns the ceiling off. */
  private static final long OFF = -1;

  /** A hundred years: no sum of a clock reading and a duration in nanoseconds overflows. */
  private static final long MAX_MS = Duration.ofDays(36_500).toMillis();

  /** A quantum times the largest weight must not overflow. */
  private static final long MAX_QUANTUM = Integer.MAX_VALUE;

  private static final long QUANTUM_RECORDS = 1;
  private static final long QUANTUM_BYTES = 16 * 1024;

  private static final ConfigDef CONFIG = define();

  private final Double rate;
  private final Long burst;
  private final Duration target;
  private final Duration interval;
  private final Duration ceiling;
  private final Duration maxAge;
  private final Duration plausibleAge;
  private final int maxRecords;
  private final long maxBytes;
  private final int dropBatch;
  private final Cost cost;
  private final long quantum;
  private final Time time;
  private final EnqueueTime enqueueTime;
  private final Store store;
  private final boolean sourceHeaders;

  private ShaperOptions(Map<String, ?> properties) {
    refuseUnknown(properties);
    Map<String, Object> given = new HashMap<>(properties);
    given.values().removeIf(Objects::isNull); // as if left out
    Map<String, Object> values = CONFIG.parse(given);
    rate = (Double) values.get(RATE);
    burst = (Long) values.get(BURST);
    target = millis(values, TARGET_MS);
    interval = millis(values, INTERVAL_MS);
    ceiling = ceiling(values, target);
    maxAge = millis(values, MAX_AGE_MS);
    plausibleAge = millis(values, PLAUSIBLE_AGE_MS);
    maxRecords = (Integer) values.get(MAX_RECORDS);
    maxBytes = (Long) values.get(MAX_BYTES);
    dropBatch = (Integer) values.get(DROP_BATCH);
    cost = constant(Cost.class, values, COST);
    quantum = quantum(values, cost);
    time = constant(Time.class, values, TIME);
    enqueueTime = constant(EnqueueTime.class, values, ENQUEUE_TIME);
    store = constant(Store.class, values, STORE);
    sourceHeaders = (Boolean) values.get(SOURCE_HEADERS);
    refuseContradictions();
  }

  /** All defaults. */
  public static ShaperOptions defaults() {
    return builder().build();
  }

  /** Starts from the defaults. */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * Reads the {@code shaper.*} entries and ignores all others.
   *
   * @throws ConfigException if an entry is unknown or out of range, or two contradict each other
   */
  public static ShaperOptions from(Map<?, ?> properties) {
    Map<String, Object> own = new HashMap<>();
    properties.forEach(
        (name, value) -> {
          if (name instanceof String text && text.startsWith(PREFIX)) {
            own.put(text, value);
          }
        });
    return new ShaperOptions(own);
  }

  /** Names, types, defaults, rules and documentation of every option. */
  public static ConfigDef configDef() {
    return new ConfigDef(CONFIG);
  }

  /** Cost units a second, of each task; null: the downstream step is the bottleneck. */
  public Double rate() {
    return rate;
  }

  /** Most cost units that may leave at once; null: worked out from the rate and {@code poll.ms}. */
  public Long burst() {
    return burst;
  }

  /** The sojourn that is acceptable. */
  public Duration target() {
    return target;
  }

  /** How long the sojourn must exceed the target before anything is dropped. */
  public Duration interval() {
    return interval;
  }

  /** Oldest record forwarded while its flow is dropping; null: off. */
  public Duration ceiling() {
    return ceiling;
  }

  /** Age past which a record is worthless whatever the load; null: none. */
  public Duration maxAge() {
    return maxAge;
  }

  /** Age, past or future, beyond which a timestamp is not believed. */
  public Duration plausibleAge() {
    return plausibleAge;
  }

  /** Most records queued, in each task. */
  public int maxRecords() {
    return maxRecords;
  }

  /** Most bytes queued, in each task. */
  public long maxBytes() {
    return maxBytes;
  }

  /** Most records dropped each time that a limit is exceeded. */
  public int dropBatch() {
    return dropBatch;
  }

  /** What a record costs. */
  public Cost cost() {
    return cost;
  }

  /** Credit that a flow of weight 1 gets each round, in cost units. */
  public long quantum() {
    return quantum;
  }

  /** Which clock decides. */
  public Time time() {
    return time;
  }

  /** From when a record's sojourn counts. */
  public EnqueueTime enqueueTime() {
    return enqueueTime;
  }

  /** Where the flow queues are held. */
  public Store store() {
    return store;
  }

  /** Whether forwarded and dropped records say where they came from. */
  public boolean sourceHeaders() {
    return sourceHeaders;
  }

  /** The settings in force, by property name; what is off or worked out later is null. */
  public Map<String, Object> effective() {
    Map<String, Object> values = new HashMap<>();
    values.put(RATE, rate);
    values.put(BURST, burst);
    values.put(TARGET_MS, target.toMillis());
    values.put(INTERVAL_MS, interval.toMillis());
    values.put(CEILING_MS, ceiling == null ? OFF : ceiling.toMillis());
    values.put(MAX_AGE_MS, maxAge == null ? null : maxAge.toMillis());
    values.put(PLAUSIBLE_AGE_MS, plausibleAge.toMillis());
    values.put(MAX_RECORDS, maxRecords);
    values.put(MAX_BYTES, maxBytes);
    values.put(DROP_BATCH, dropBatch);
    values.put(COST, lowerCase(cost));
    values.put(QUANTUM, quantum);
    values.put(TIME, lowerCase(time));
    values.put(ENQUEUE_TIME, lowerCase(enqueueTime));
    values.put(STORE, lowerCase(store));
    values.put(SOURCE_HEADERS, sourceHeaders);
    return values;
  }

  @Override
  public String toString() {
    return effective().entrySet().stream()
        .filter(entry -> entry.getValue() != null)
        .sorted(Map.Entry.comparingByKey())
        .map(Object::toString)
        .collect(Collectors.joining(", ", "{", "}"));
  }

  private static ConfigDef define() {
    return new ConfigDef()
        .define(
            RATE,
            ConfigDef.Type.DOUBLE,
            null,
            rule(value -> (Double) value > 0 && (Double) value < 1e15, "be above 0 and below 1e15"),
            Importance.HIGH,
            "Cost units a second that leave each task, that is, each partition. Default: none, the"
                + " downstream step itself is the bottleneck and is kept busy.")
        .define(
            BURST,
            ConfigDef.Type.LONG,
            null,
            between(1, Long.MAX_VALUE),
            Importance.MEDIUM,
            "Most cost units that may leave at once after a pause. Default: the rate times the"
                + " larger of 50 ms and 2 x poll.ms, since tokens must last from one tick to the"
                + " next.")
        .define(
            TARGET_MS,
            ConfigDef.Type.LONG,
            100L,
            between(0, MAX_MS),
            Importance.HIGH,
            "Acceptable sojourn, in milliseconds. Default 100: what a queue served in slices of"
                + " some 30 ms can hold.")
        .define(
            INTERVAL_MS,
            ConfigDef.Type.LONG,
            1000L,
            between(1, MAX_MS),
            Importance.MEDIUM,
            "How long the sojourn must exceed the target before a record is dropped, in"
                + " milliseconds. Default 1000: ten targets, as RFC 8289 advises at least; a burst"
                + " that is served within it costs nobody anything.")
        .define(
            CEILING_MS,
            ConfigDef.Type.LONG,
            null,
            rule(value -> (Long) value >= OFF && (Long) value <= MAX_MS, "be -1 (off) or an age"),
            Importance.MEDIUM,
            "While a flow is dropping, no record older than this is forwarded, in milliseconds; -1"
                + " turns it off. Default 2 x target: Kafka producers do not slow down, and CoDel"
                + " alone needs minutes to catch up with them.")
        .define(
            MAX_AGE_MS,
            ConfigDef.Type.LONG,
            null,
            between(1, MAX_MS),
            Importance.HIGH,
            "Age past which a record is worthless and dropped whatever the load, in milliseconds."
                + " Default: none, since only the user knows.")
        .define(
            PLAUSIBLE_AGE_MS,
            ConfigDef.Type.LONG,
            Duration.ofDays(7).toMillis(),
            between(1, MAX_MS),
            Importance.LOW,
            "A timestamp further than this from the present, past or future, is taken for a mistake"
                + " and the record for one that arrives now, in milliseconds. Default 7 days, Kafka's"
                + " default retention.")
        .define(
            MAX_RECORDS,
            ConfigDef.Type.INT,
            100_000,
            between(1, Long.MAX_VALUE),
            Importance.MEDIUM,
            "Most records queued in each task; above it the fattest flow loses its oldest. Default"
                + " 100000: restored within seconds. At least 8 for each flow expected.")
        .define(
            MAX_BYTES,
            ConfigDef.Type.LONG,
            64L * 1024 * 1024,
            between(1, Long.MAX_VALUE),
            Importance.MEDIUM,
            "Most bytes queued in each task, as the records are stored; above it the fattest flow"
                + " loses its oldest. Default 64 MiB: bounds the heap of a task.")
        .define(
            DROP_BATCH,
            ConfigDef.Type.INT,
            64,
            between(1, 10_000),
            Importance.LOW,
            "Most records dropped each time that a limit is exceeded, and at most half of the"
                + " flow's backlog. Default 64, as in RFC 8290.")
        .define(
            COST,
            ConfigDef.Type.STRING,
            "records",
            oneOf(Cost.class),
            Importance.MEDIUM,
            "What a record costs, in rate and fairness: records (1 each) or bytes (as stored)."
                + " Default records: most steps take a time for each record, not each byte.")
        .define(
            QUANTUM,
            ConfigDef.Type.LONG,
            null,
            between(1, MAX_QUANTUM),
            Importance.LOW,
            "Credit that a flow of weight 1 gets each round, and the backlog that is always"
                + " tolerated, in cost units; near the typical cost of a record. Default 1, with"
                + " cost = bytes 16384.")
        .define(
            TIME,
            ConfigDef.Type.STRING,
            "wall",
            oneOf(Time.class),
            Importance.MEDIUM,
            "Which clock decides: wall, or stream (the largest timestamp seen), where a replay"
                + " decides the same again and records leave only as stream time advances. Default"
                + " wall: staleness is about the present.")
        .define(
            ENQUEUE_TIME,
            ConfigDef.Type.STRING,
            "timestamp",
            oneOf(EnqueueTime.class),
            Importance.MEDIUM,
            "From when a record's sojourn counts: timestamp (the record's) or arrival. Default"
                + " timestamp: time in the log is waiting, too.")
        .define(
            STORE,
            ConfigDef.Type.STRING,
            "memory",
            oneOf(Store.class),
            Importance.MEDIUM,
            "Where the queued records are held: memory or rocksdb. Default memory: twice as fast,"
                + " and a changelog backs both.")
        .define(
            SOURCE_HEADERS,
            ConfigDef.Type.BOOLEAN,
            false,
            Importance.LOW,
            "Whether to add headers with the topic, partition and offset that a record came from,"
                + " which Kafka Streams forgets behind any queue. Default false: nobody's records"
                + " are changed unasked.");
  }

  private static void refuseUnknown(Map<String, ?> properties) {
    for (String name : properties.keySet()) {
      if (!CONFIG.names().contains(name)) {
        throw new ConfigException(
            "option must be one of "
                + CONFIG.names().stream().sorted().collect(Collectors.joining(", "))
                + ", was "
                + name);
      }
    }
  }

  private void refuseContradictions() {
    if (interval.compareTo(target) <= 0) {
      throw new ConfigException("interval must exceed target " + target + ", was " + interval);
    }
    if (ceiling != null && ceiling.compareTo(target) < 0) {
      throw new ConfigException("ceiling must be at least target " + target + ", was " + ceiling);
    }
    if (burst != null && rate == null) {
      throw new ConfigException("burst must come with a rate, was " + burst + " without one");
    }
    if (maxAge != null && maxAge.compareTo(plausibleAge) > 0) {
      throw new ConfigException(
          "plausible age must be at least max age " + maxAge + ", was " + plausibleAge);
    }
  }

  private static Duration ceiling(Map<String, Object> values, Duration target) {
    Long millis = (Long) values.get(CEILING_MS);
    if (millis == null) {
      return target.multipliedBy(2);
    }
    return millis == OFF ? null : Duration.ofMillis(millis);
  }

  private static long quantum(Map<String, Object> values, Cost cost) {
    Long quantum = (Long) values.get(QUANTUM);
    if (quantum != null) {
      return quantum;
    }
    return cost == Cost.BYTES ? QUANTUM_BYTES : QUANTUM_RECORDS;
  }

  private static Duration millis(Map<String, Object> values, String name) {
    Long millis = (Long) values.get(name);
    return millis == null ? null : Duration.ofMillis(millis);
  }

  private static <E extends Enum<E>> E constant(
      Class<E> type, Map<String, Object> values, String name) {
    return Enum.valueOf(type, ((String) values.get(name)).toUpperCase(Locale.ROOT));
  }

  private static String lowerCase(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }

  private static ConfigDef.Validator between(long least, long most) {
    return rule(
        value -> ((Number) value).longValue() >= least && ((Number) value).longValue() <= most,
        most == Long.MAX_VALUE ? "be at least " + least : "be between " + least + " and " + most);
  }

  private static <E extends Enum<E>> ConfigDef.Validator oneOf(Class<E> type) {
    String names =
        Arrays.stream(type.getEnumConstants())
            .map(ShaperOptions::lowerCase)
            .collect(Collectors.joining(" or "));
    return rule(
        value ->
            Arrays.stream(type.getEnumConstants())
                .anyMatch(constant -> lowerCase(constant).equals(value)),
        "be " + names);
  }

  /** A null is an option that was left out. */
  private static ConfigDef.Validator rule(Predicate<Object> predicate, String must) {
    return ConfigDef.LambdaValidator.with(
        (name, value) -> {
          if (value != null && !predicate.test(value)) {
            throw new ConfigException(name + " must " + must + ", was " + value);
          }
        },
        () -> must);
  }

  /** Collects options; {@link #build} checks them. Not thread-safe. */
  public static final class Builder {
    private final Map<String, Object> properties = new HashMap<>();

    private Builder() {}

    /** Cost units a second that leave each task, above 0. */
    public Builder rate(double perSecond) {
      return put(RATE, perSecond);
    }

    /** Most cost units that may leave at once, at least 1. */
    public Builder burst(long costUnits) {
      return put(BURST, costUnits);
    }

    /** Acceptable sojourn, in whole milliseconds. */
    public Builder target(Duration target) {
      return put(TARGET_MS, target);
    }

    /** How long the sojourn must exceed the target before anything is dropped. */
    public Builder interval(Duration interval) {
      return put(INTERVAL_MS, interval);
    }

    /** Oldest record forwarded while its flow is dropping. */
    public Builder ceiling(Duration ceiling) {
      return put(CEILING_MS, ceiling);
    }

    /** Leaves dropping to CoDel's control law alone. */
    public Builder withoutCeiling() {
      return put(CEILING_MS, OFF);
    }

    /** Age past which a record is worthless whatever the load. */
    public Builder maxAge(Duration maxAge) {
      return put(MAX_AGE_MS, maxAge);
    }

    /** Age, past or future, beyond which a timestamp is not believed. */
    public Builder plausibleAge(Duration plausibleAge) {
      return put(PLAUSIBLE_AGE_MS, plausibleAge);
    }

    /** Most records queued, in each task. */
    public Builder maxRecords(int records) {
      return put(MAX_RECORDS, records);
    }

    /** Most bytes queued, in each task. */
    public Builder maxBytes(long bytes) {
      return put(MAX_BYTES, bytes);
    }

    /** Most records dropped each time that a limit is exceeded. */
    public Builder dropBatch(int records) {
      return put(DROP_BATCH, records);
    }

    /** What a record costs; a cost function of the shaper takes precedence. */
    public Builder cost(Cost cost) {
      return put(COST, lowerCase(cost));
    }

    /** Credit that a flow of weight 1 gets each round, in cost units. */
    public Builder quantum(long costUnits) {
      return put(QUANTUM, costUnits);
    }

    /** Which clock decides. */
    public Builder time(Time time) {
      return put(TIME, lowerCase(time));
    }

    /** From when a record's sojourn counts. */
    public Builder enqueueTime(EnqueueTime enqueueTime) {
      return put(ENQUEUE_TIME, lowerCase(enqueueTime));
    }

    /** Where the flow queues are held. */
    public Builder store(Store store) {
      return put(STORE, lowerCase(store));
    }

    /** Whether forwarded and dropped records say where they came from. */
    public Builder sourceHeaders(boolean add) {
      return put(SOURCE_HEADERS, add);
    }

    /**
     * The options, checked.
     *
     * @throws ConfigException if an option is out of range, or two contradict each other
     */
    public ShaperOptions build() {
      return new ShaperOptions(properties);
    }

    private Builder put(String name, Duration duration) {
      Objects.requireNonNull(duration, name);
      if (duration.compareTo(Duration.ofMillis(MAX_MS)) > 0 || duration.isNegative()) {
        throw new ConfigException(name + " must be between PT0S and PT876000H, was " + duration);
      }
      if (!duration.equals(Duration.ofMillis(duration.toMillis()))) {
        throw new ConfigException(name + " must be whole milliseconds, was " + duration);
      }
      return put(name, (Object) duration.toMillis());
    }

    private Builder put(String name, Object value) {
      properties.put(name, value);
      return this;
    }
  }
}
