package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;

/**
 * Any two options with each of their extreme values together, in as few runs as it takes: what is
 * accepted works, what is refused says what contradicts what.
 */
class OptionPairsTest {
  private static final long SEED = 1;
  private static final int TRIES = 200;
  private static final long LONGEST_MS = Duration.ofDays(36_500).toMillis();

  private static final Map<String, List<Object>> VALUES = new LinkedHashMap<>();

  static {
    values("rate", null, Double.MIN_VALUE, 0.5, 1000.0, 999_999_999_999_999.0);
    values("burst", null, 1L, 1000L, Long.MAX_VALUE);
    values("target.ms", null, 0L, 1L, LONGEST_MS - 1);
    values("interval.ms", null, 1L, 2L, LONGEST_MS);
    values("ceiling.ms", null, -1L, 0L, LONGEST_MS);
    values("max.age.ms", null, 1L, 5000L, LONGEST_MS);
    values("plausible.age.ms", null, 1L, LONGEST_MS);
    values("max.records", null, 1, Integer.MAX_VALUE);
    values("max.bytes", null, 1L, Long.MAX_VALUE);
    values("drop.batch", null, 1, 10_000);
    values("cost", null, "bytes");
    values("quantum", null, 1L, (long) Integer.MAX_VALUE);
    values("time", null, "stream");
    values("enqueue.time", null, "arrival");
    values("store", null, "rocksdb");
    values("source.headers", null, true);
  }

  private static void values(String name, Object... values) {
    VALUES.put(ShaperOptions.PREFIX + name, Arrays.asList(values));
  }

  /** A value of one option, and one of another. */
  private record Pair(String name, Object value, String otherName, Object otherValue) {
    boolean isIn(Map<String, Object> properties) {
      return same(properties.get(name), value) && same(properties.get(otherName), otherValue);
    }

    private static boolean same(Object one, Object other) {
      return one == null ? other == null : one.equals(other);
    }
  }

  private final Random random = new Random(SEED);

  @Test
  void everyOptionIsHere() {
    assertThat(VALUES.keySet()).isEqualTo(ShaperOptions.configDef().names());
  }

  @Test
  void eachTwoValuesWorkTogetherOrAreRefusedWithBoth() {
    Set<Pair> open = pairs();
    List<Pair> refused = new ArrayList<>();
    List<ShaperOptions> rows = new ArrayList<>();
    while (!open.isEmpty()) {
      Pair pair = open.iterator().next();
      Map<String, Object> row = completion(pair, open);
      if (row == null) {
        refused.add(pair);
        open.remove(pair);
      } else {
        rows.add(ShaperOptions.from(row));
        open.removeIf(other -> other.isIn(row));
      }
    }
    for (int i = 0; i < rows.size(); i++) {
      try (ShaperSimulation simulation = new ShaperSimulation(i, rows.get(i))) {
        // Before Kafka 4.3 a store on disk is flushed at each commit, that is, in the driver at
        // each
        // record.
        simulation.run(rows.get(i).store() == ShaperOptions.Store.ROCKSDB ? 1 : 2);
      }
    }
    assertThat(refused).isNotEmpty().allSatisfy(OptionPairsTest::checkContradiction);
    assertThat(rows.size()).as("rows").isBetween(20, 100);
  }

  /** Of some that are accepted, the one with most pairs that are still open; null if none is. */
  private Map<String, Object> completion(Pair pair, Set<Pair> open) {
    Map<String, Object> best = null;
    long most = 0;
    for (int i = 0; i < TRIES; i++) {
      Map<String, Object> row = new HashMap<>();
      VALUES.forEach((name, values) -> row.put(name, values.get(random.nextInt(values.size()))));
      row.put(pair.name, pair.value);
      row.put(pair.otherName, pair.otherValue);
      long covered = open.stream().filter(other -> other.isIn(row)).count();
      if (covered > most && refusal(row) == null) {
        most = covered;
        best = row;
      }
    }
    return best;
  }

  private static void checkContradiction(Pair pair) {
    Map<String, Object> properties = new HashMap<>();
    properties.put("shaper.interval.ms", LONGEST_MS);
    properties.put("shaper.ceiling.ms", -1L);
    properties.put(pair.name, pair.value);
    properties.put(pair.otherName, pair.otherValue);
    assertThat(refusal(properties))
        .as("%s", pair)
        .isNotNull()
        .contains(inWords(pair.name, pair.value), inWords(pair.otherName, pair.otherValue));
  }

  private static String refusal(Map<String, Object> properties) {
    try {
      ShaperOptions.from(properties);
      return null;
    } catch (ConfigException e) {
      return e.getMessage();
    }
  }

  private static String inWords(String name, Object value) {
    return switch (name) {
      case "shaper.rate" -> "without one";
      case "shaper.burst" -> "was " + value;
      default -> {
        Object inForce = value == null ? ShaperOptions.defaults().effective().get(name) : value;
        yield Duration.ofMillis((Long) inForce).toString();
      }
    };
  }

  private static Set<Pair> pairs() {
    Set<Pair> pairs = new LinkedHashSet<>();
    List<String> names = new ArrayList<>(VALUES.keySet());
    for (int i = 0; i < names.size(); i++) {
      for (int j = i + 1; j < names.size(); j++) {
        for (Object value : VALUES.get(names.get(i))) {
          for (Object other : VALUES.get(names.get(j))) {
            pairs.add(new Pair(names.get(i), value, names.get(j), other));
          }
        }
      }
    }
    return pairs;
  }
}
