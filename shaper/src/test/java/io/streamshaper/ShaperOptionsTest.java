package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ShaperOptionsTest {
  private static final long HUNDRED_YEARS_MS = 3_153_600_000_000L;

  @Test
  void defaultsAreTheOnesThatWereMeasured() {
    ShaperOptions options = ShaperOptions.defaults();
    // The downstream step is the bottleneck, and only the user knows better.
    assertThat(options.rate()).isNull();
    // Depends on poll.ms, which is known when a task starts.
    assertThat(options.burst()).isNull();
    // What a queue served in slices of some 30 ms can hold.
    assertThat(options.target()).isEqualTo(Duration.ofMillis(100));
    // Ten targets, as RFC 8289 advises at least.
    assertThat(options.interval()).isEqualTo(Duration.ofSeconds(1));
    // Twice the target: producers do not slow down, and CoDel alone needs minutes.
    assertThat(options.ceiling()).isEqualTo(Duration.ofMillis(200));
    // Nobody's records are worthless unasked.
    assertThat(options.maxAge()).isNull();
    // Kafka's default retention: an older record is hardly one that was waiting.
    assertThat(options.plausibleAge()).isEqualTo(Duration.ofDays(7));
    // Restored within seconds.
    assertThat(options.maxRecords()).isEqualTo(100_000);
    // Bounds the heap of a task.
    assertThat(options.maxBytes()).isEqualTo(64 * 1024 * 1024);
    // RFC 8290 and Linux.
    assertThat(options.dropBatch()).isEqualTo(64);
    // Most steps take a time for each record, not each byte.
    assertThat(options.cost()).isEqualTo(ShaperOptions.Cost.RECORDS);
    // The cost of one record.
    assertThat(options.quantum()).isEqualTo(1);
    // Staleness is about the present.
    assertThat(options.time()).isEqualTo(ShaperOptions.Time.WALL);
    // Time in the log is waiting, too.
    assertThat(options.enqueueTime()).isEqualTo(ShaperOptions.EnqueueTime.TIMESTAMP);
    // Twice as fast, and a changelog backs both.
    assertThat(options.store()).isEqualTo(ShaperOptions.Store.MEMORY);
    // Nobody's records are changed unasked.
    assertThat(options.sourceHeaders()).isFalse();
  }

  @Test
  void theCeilingFollowsTheTargetAndTheQuantumTheCost() {
    ShaperOptions options =
        ShaperOptions.builder()
            .target(Duration.ofMillis(300))
            .cost(ShaperOptions.Cost.BYTES)
            .build();
    assertThat(options.ceiling()).isEqualTo(Duration.ofMillis(600));
    assertThat(options.quantum()).isEqualTo(16 * 1024);
  }

  /** Each option set in code, by property and the value that the property then has. */
  private static final Map<String, Map.Entry<UnaryOperator<ShaperOptions.Builder>, Object>> EACH =
      new LinkedHashMap<>();

  static {
    each("rate", 2.5, builder -> builder.rate(2.5));
    each("burst", 7L, builder -> builder.burst(7));
    each("target.ms", 11L, builder -> builder.target(Duration.ofMillis(11)));
    each("interval.ms", 1234L, builder -> builder.interval(Duration.ofMillis(1234)));
    each("ceiling.ms", 345L, builder -> builder.ceiling(Duration.ofMillis(345)));
    each("max.age.ms", 4567L, builder -> builder.maxAge(Duration.ofMillis(4567)));
    each("plausible.age.ms", 56789L, builder -> builder.plausibleAge(Duration.ofMillis(56789)));
    each("max.records", 8, builder -> builder.maxRecords(8));
    each("max.bytes", 9L, builder -> builder.maxBytes(9));
    each("drop.batch", 10, builder -> builder.dropBatch(10));
    each("cost", "bytes", builder -> builder.cost(ShaperOptions.Cost.BYTES));
    each("quantum", 12L, builder -> builder.quantum(12));
    each("time", "stream", builder -> builder.time(ShaperOptions.Time.STREAM));
    each(
        "enqueue.time",
        "arrival",
        builder -> builder.enqueueTime(ShaperOptions.EnqueueTime.ARRIVAL));
    each("store", "rocksdb", builder -> builder.store(ShaperOptions.Store.ROCKSDB));
    each("source.headers", true, builder -> builder.sourceHeaders(true));
  }

  private static void each(String name, Object value, UnaryOperator<ShaperOptions.Builder> set) {
    EACH.put("shaper." + name, Map.entry(set, value));
  }

  @Test
  void eachOptionThatIsSetIsInForceFromCodeAndFromProperties() {
    assertThat(ShaperOptions.configDef().names()).isEqualTo(EACH.keySet());
    ShaperOptions.Builder builder = ShaperOptions.builder();
    Map<String, Object> expected = new HashMap<>();
    Properties properties = new Properties();
    for (Map.Entry<String, Map.Entry<UnaryOperator<ShaperOptions.Builder>, Object>> option :
        EACH.entrySet()) {
      builder = option.getValue().getKey().apply(builder);
      expected.put(option.getKey(), option.getValue().getValue());
      properties.put(option.getKey(), option.getValue().getValue().toString());
    }
    assertThat(builder.build().effective()).isEqualTo(expected);
    assertThat(ShaperOptions.from(properties).effective()).isEqualTo(expected);
    assertThat(ShaperOptions.from(expected).effective()).isEqualTo(expected);
  }

  @Test
  void eachOptionAloneChangesItselfAndWhatFollowsIt() {
    Map<String, Object> defaults = ShaperOptions.defaults().effective();
    EACH.forEach(
        (name, option) -> {
          ShaperOptions.Builder builder = ShaperOptions.builder();
          if (name.equals("shaper.burst")) {
            builder.rate(1);
          }
          Map<String, Object> effective = option.getKey().apply(builder).build().effective();
          assertThat(effective).containsEntry(name, option.getValue());
          assertThat(defaults.get(name)).isNotEqualTo(option.getValue());
          Map<String, String> follows =
              Map.of("shaper.target.ms", "shaper.ceiling.ms", "shaper.cost", "shaper.quantum");
          for (String other : defaults.keySet()) {
            if (!other.equals(name) && !other.equals(follows.get(name))) {
              Object expected =
                  other.equals("shaper.rate") && name.equals("shaper.burst")
                      ? 1.0
                      : defaults.get(other);
              assertThat(effective.get(other)).as("%s after %s", other, name).isEqualTo(expected);
            }
          }
        });
  }

  @Test
  void whatIsInForceCanBeSetAgain() {
    Map<String, Object> effective = ShaperOptions.defaults().effective();
    assertThat(ShaperOptions.from(effective).effective()).isEqualTo(effective);
    Map<String, Object> off = ShaperOptions.builder().withoutCeiling().build().effective();
    assertThat(off).containsEntry("shaper.ceiling.ms", -1L);
    assertThat(ShaperOptions.from(off).ceiling()).isNull();
  }

  @Test
  void aNullIsAnOptionThatWasLeftOut() {
    for (String name : EACH.keySet()) {
      Map<String, Object> properties = new HashMap<>();
      properties.put(name, null);
      assertThat(ShaperOptions.from(properties).effective())
          .as(name)
          .isEqualTo(ShaperOptions.defaults().effective());
    }
  }

  @Test
  void propertiesAreTextWithBlanksAroundIt() {
    ShaperOptions options =
        ShaperOptions.from(
            Map.of(
                "shaper.rate", " 5 ",
                "shaper.max.records", " 5 ",
                "shaper.source.headers", " TRUE ",
                "shaper.time", " stream "));
    assertThat(options.rate()).isEqualTo(5);
    assertThat(options.maxRecords()).isEqualTo(5);
    assertThat(options.sourceHeaders()).isTrue();
    assertThat(options.time()).isEqualTo(ShaperOptions.Time.STREAM);
  }

  @Test
  void otherPeoplesPropertiesAreIgnored() {
    Map<Object, Object> properties = new HashMap<>();
    properties.put("application.id", "app");
    properties.put("shaperish", 1);
    properties.put("SHAPER.rate", 1);
    properties.put(5, 6);
    properties.put(null, null);
    assertThat(ShaperOptions.from(properties).effective())
        .isEqualTo(ShaperOptions.defaults().effective());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"shaper.", "shaper.rates", "shaper.Rate", "shaper.target", "shaper.rate "})
  void anUnknownOptionIsRefusedWithTheOnesThereAre(String name) {
    assertThatThrownBy(() -> ShaperOptions.from(Map.of(name, "1")))
        .isInstanceOf(ConfigException.class)
        .hasMessageStartingWith("option must be one of shaper.burst, shaper.ceiling.ms, ")
        .hasMessageEndingWith(", was " + name);
    Map<String, Object> empty = new HashMap<>();
    empty.put(name, null);
    assertThatThrownBy(() -> ShaperOptions.from(empty)).hasMessageEndingWith(", was " + name);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "rate             | 0                    | be above 0 and below 1e15 | 0.0",
        "rate             | -1                   | be above 0 and below 1e15 | -1.0",
        "rate             | NaN                  | be above 0 and below 1e15 | NaN",
        "rate             | Infinity             | be above 0 and below 1e15 | Infinity",
        "rate             | 1e15                 | be above 0 and below 1e15 | 1.0E15",
        "burst            | 0                    | be at least 1 | 0",
        "target.ms        | -1                   | be between 0 and 3153600000000 | -1",
        "target.ms        | 3153600000001        | be between 0 and 3153600000000 | 3153600000001",
        "interval.ms      | 0                    | be between 1 and 3153600000000 | 0",
        "interval.ms      | 9223372036854775807  | be between 1 and 3153600000000 | 9223372036854775807",
        "ceiling.ms       | -2                   | be -1 (off) or an age | -2",
        "ceiling.ms       | 3153600000001        | be -1 (off) or an age | 3153600000001",
        "max.age.ms       | 0                    | be between 1 and 3153600000000 | 0",
        "plausible.age.ms | 0                    | be between 1 and 3153600000000 | 0",
        "max.records      | 0                    | be at least 1 | 0",
        "max.bytes        | 0                    | be at least 1 | 0",
        "max.bytes        | -9223372036854775808 | be at least 1 | -9223372036854775808",
        "drop.batch       | 0                    | be between 1 and 10000 | 0",
        "drop.batch       | 10001                | be between 1 and 10000 | 10001",
        "quantum          | 0                    | be between 1 and 2147483647 | 0",
        "quantum          | 2147483648           | be between 1 and 2147483647 | 2147483648",
        "cost             | Bytes                | be records or bytes | Bytes",
        "time             | event                | be wall or stream | event",
        "enqueue.time     | now                  | be timestamp or arrival | now",
        "store            | disk                 | be memory or rocksdb | disk"
      })
  void whatIsOutOfRangeIsRefusedWithTheRuleAndTheValue(
      String name, String value, String rule, String was) {
    assertThatThrownBy(() -> ShaperOptions.from(Map.of("shaper." + name, value)))
        .isInstanceOf(ConfigException.class)
        .hasMessage("shaper." + name + " must " + rule + ", was " + was);
  }

  @ParameterizedTest
  @CsvSource({
    "rate, fast",
    "max.records, 1.5",
    "max.records, 3000000000",
    "source.headers, yes",
    "target.ms, 1s"
  })
  void whatCannotBeReadIsRefusedWithTheNameAndTheValue(String name, String value) {
    assertThatThrownBy(() -> ShaperOptions.from(Map.of("shaper." + name, value)))
        .isInstanceOf(ConfigException.class)
        .hasMessageContaining("shaper." + name)
        .hasMessageContaining(value);
  }

  @Test
  void codeIsHeldToTheSameRules() {
    ShaperOptions.Builder builder = ShaperOptions.builder();
    assertRefused(builder.rate(Double.NaN), "shaper.rate must be above 0 and below 1e15, was NaN");
    assertRefused(builder.rate(1).burst(-3), "shaper.burst must be at least 1, was -3");
    assertRefused(
        builder.burst(1).interval(Duration.ZERO),
        "shaper.interval.ms must be between 1 and " + HUNDRED_YEARS_MS + ", was 0");
    builder.interval(Duration.ofSeconds(1));
    assertRefused(builder.maxRecords(-1), "shaper.max.records must be at least 1, was -1");
    assertRefused(
        builder.maxRecords(1).dropBatch(0), "shaper.drop.batch must be between 1 and 10000, was 0");
    assertRefused(
        builder.dropBatch(1).quantum(Long.MAX_VALUE),
        "shaper.quantum must be between 1 and 2147483647, was 9223372036854775807");
  }

  private static void assertRefused(ShaperOptions.Builder builder, String message) {
    assertThatThrownBy(builder::build).isInstanceOf(ConfigException.class).hasMessage(message);
  }

  @Test
  void contradictionsAreRefusedWithBothValues() {
    assertRefused(
        ShaperOptions.builder().target(Duration.ofMillis(200)).interval(Duration.ofMillis(100)),
        "interval must exceed target PT0.2S, was PT0.1S");
    assertRefused(
        ShaperOptions.builder().target(Duration.ofSeconds(1)),
        "interval must exceed target PT1S, was PT1S");
    assertRefused(
        ShaperOptions.builder().ceiling(Duration.ofMillis(99)),
        "ceiling must be at least target PT0.1S, was PT0.099S");
    assertRefused(
        ShaperOptions.builder().burst(5), "burst must come with a rate, was 5 without one");
    assertRefused(
        ShaperOptions.builder().maxAge(Duration.ofDays(8)),
        "plausible age must be at least max age PT192H, was PT168H");
    assertThat(
            ShaperOptions.builder()
                .ceiling(Duration.ofMillis(100))
                .maxAge(Duration.ofDays(7))
                .build()
                .ceiling())
        .isEqualTo(Duration.ofMillis(100));
  }

  @Test
  void aDurationThatKafkaCannotStoreIsRefused() {
    ShaperOptions.Builder builder = ShaperOptions.builder();
    assertThatThrownBy(() -> builder.target(Duration.ofNanos(1_500_000)))
        .isInstanceOf(ConfigException.class)
        .hasMessage("shaper.target.ms must be whole milliseconds, was PT0.0015S");
    for (Duration duration :
        new Duration[] {
          Duration.ofSeconds(Long.MAX_VALUE),
          Duration.ofSeconds(Long.MIN_VALUE),
          Duration.ofMillis(HUNDRED_YEARS_MS + 1),
          Duration.ofMillis(HUNDRED_YEARS_MS).plusNanos(1),
          Duration.ofMillis(-1)
        }) {
      assertThatThrownBy(() -> builder.ceiling(duration))
          .isInstanceOf(ConfigException.class)
          .hasMessage("shaper.ceiling.ms must be between PT0S and PT876000H, was " + duration);
    }
    assertThatThrownBy(() -> builder.maxAge(null)).hasMessage("shaper.max.age.ms");
    assertThat(builder.target(Duration.ZERO).build().target()).isZero();
  }

  @Test
  void theLongestDurationsDoNotOverflow() {
    Duration longest = Duration.ofMillis(HUNDRED_YEARS_MS);
    ShaperOptions options =
        ShaperOptions.builder()
            .target(longest.minusMillis(1))
            .interval(longest)
            .ceiling(longest)
            .maxAge(longest)
            .plausibleAge(longest)
            .rate(999_999_999_999_999.0)
            .burst(Long.MAX_VALUE)
            .maxBytes(Long.MAX_VALUE)
            .quantum(Integer.MAX_VALUE)
            .build();
    try (TestTopology test =
        TestTopology.of(TestTopology.shaper(ShaperOptions.builder()).options(options))) {
      test.pipeMany("k", 0, 10).pipe("k", "old", 0).pipe("k", "future", Long.MAX_VALUE).drain();
      assertThat(test.dropped).isEmpty();
      test.checkLaw();
    }
  }

  @Test
  void optionsDoNotChangeOnceTheyAreBuilt() {
    ShaperOptions.Builder builder = ShaperOptions.builder().maxRecords(5);
    ShaperOptions options = builder.build();
    builder.maxRecords(6);
    options.effective().put("shaper.max.records", 7);
    ShaperOptions.configDef()
        .define("shaper.other", ConfigDef.Type.INT, ConfigDef.Importance.LOW, "");
    assertThat(options.maxRecords()).isEqualTo(5);
    assertThat(options.effective()).containsEntry("shaper.max.records", 5);
    assertThat(builder.build().maxRecords()).isEqualTo(6);
    assertThat(ShaperOptions.configDef().names()).isEqualTo(EACH.keySet());
  }

  @Test
  void textSaysWhatIsInForceInOrder() {
    assertThat(ShaperOptions.builder().rate(2).maxRecords(3).build())
        .hasToString(
            "{shaper.ceiling.ms=200, shaper.cost=records, shaper.drop.batch=64,"
                + " shaper.enqueue.time=timestamp, shaper.interval.ms=1000,"
                + " shaper.max.bytes=67108864, shaper.max.records=3,"
                + " shaper.plausible.age.ms=604800000, shaper.quantum=1, shaper.rate=2.0,"
                + " shaper.source.headers=false, shaper.store=memory, shaper.target.ms=100,"
                + " shaper.time=wall}");
  }

  @Test
  void everyOptionIsDocumentedWithItsDefault() {
    ShaperOptions.configDef()
        .configKeys()
        .values()
        .forEach(key -> assertThat(key.documentation).as(key.name).contains("Default"));
  }
}
