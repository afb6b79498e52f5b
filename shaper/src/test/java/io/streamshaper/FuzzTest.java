package io.streamshaper;

import static io.streamshaper.TestTopology.START_MS;
import static io.streamshaper.TestTopology.patient;
import static io.streamshaper.TestTopology.shaper;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.utils.Bytes;
import org.junit.jupiter.api.Test;

/**
 * What comes from outside and is not a record of Kafka's: the store's bytes and the user's
 * properties. Of a record's own headers the shaper reads none.
 */
class FuzzTest {
  private static final long SEED = 20260304;

  private final Random random = new Random(SEED);

  /** Also of the position and of what remains of a block: nothing may be passed over. */
  @Test
  void whateverBecomesOfTheStoredBytesNoRecordIsLostInSilence() {
    FakeTask task = new FakeTask((record, child) -> {});
    ShaperOptions.Builder options = patient(1).burst(1).time(ShaperOptions.Time.STREAM);
    task.start(shaper(options));
    for (int i = 0; i < 20; i++) {
      task.pipe("k" + i % 3, "v" + i, START_MS);
    }
    task.commit();
    task.pipe("k0", "v20", START_MS + 1000); // one leaves, and the first block has a remainder
    task.commit();
    Map<Bytes, byte[]> stored = new HashMap<>(task.entries);
    List<Bytes> keys = new ArrayList<>(task.entries.keySet());
    List<Long> sequences = open(task);
    assertThat(sequences).hasSize(19);
    assertThat(keys).as("position, two blocks, remainder").hasSize(4);
    int refused = 0;
    for (int i = 0; i < 20_000; i++) {
      Bytes key = random.nextBoolean() ? keys.get(0) : keys.get(random.nextInt(keys.size()));
      byte[] mutated = mutate(stored.get(key));
      task.entries.put(key, mutated);
      String what =
          "seed %d, mutation %d: %s under %s".formatted(SEED, i, hex(mutated), hex(key.get()));
      try {
        assertThat(open(task)).as(what).isEqualTo(sequences);
      } catch (SerializationException e) {
        assertThat(e).as(what).hasMessageContaining("store inner, key " + hex(key.get()));
        refused++;
      }
      task.entries.put(key, stored.get(key));
    }
    assertThat(refused).isGreaterThan(15_000);
    assertThat(task.openIterators).isZero();
  }

  private static List<Long> open(FakeTask task) {
    List<Long> restored = new ArrayList<>();
    FlowQueueStore store = new FlowQueueStore(task.innerStore(), false, true);
    store.open(task.hookStore(), true, 100, START_MS, 0, queued -> restored.add(queued.sequence()));
    return restored;
  }

  private byte[] mutate(byte[] bytes) {
    byte[] mutated = bytes.clone();
    switch (random.nextInt(4)) {
      case 0 -> mutated = Arrays.copyOf(mutated, random.nextInt(mutated.length + 5));
      case 1 -> random.nextBytes(mutated);
      case 2 -> Arrays.fill(mutated, random.nextInt(mutated.length), mutated.length, (byte) -1);
      default -> mutated[random.nextInt(mutated.length)] ^= (byte) (1 << random.nextInt(8));
    }
    return mutated;
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  private static final List<Object> VALUES =
      Arrays.asList(
          null,
          "",
          " ",
          "0",
          "1",
          " 5 ",
          "-1",
          "-0",
          "1.5",
          "1e3",
          "1e400",
          "NaN",
          "Infinity",
          "0x10",
          "9223372036854775807",
          "9223372036854775808",
          "-9223372036854775808",
          "\u0661",
          "true",
          "FALSE",
          "yes",
          "wall",
          "STREAM",
          "stream",
          "bytes",
          "Bytes",
          "rocksdb",
          "arrival",
          "\ud800",
          "%s",
          "${env:HOME}",
          "x".repeat(10_000),
          0,
          1,
          -1,
          7,
          5L,
          Integer.MAX_VALUE,
          Integer.MIN_VALUE,
          Long.MAX_VALUE,
          Long.MIN_VALUE,
          3_153_600_000_000L,
          2.5,
          2.5f,
          1e15,
          Double.NaN,
          Double.NEGATIVE_INFINITY,
          Double.MIN_VALUE,
          true,
          'c',
          List.of(),
          List.of(1),
          Map.of(),
          new Object[0],
          new byte[] {1},
          String.class,
          ShaperOptions.Time.STREAM,
          new Object());

  @Test
  void anyPropertiesAreOptionsOrRefusedByName() {
    List<String> names = new ArrayList<>(ShaperOptions.configDef().names());
    names.sort(null);
    int accepted = 0;
    int refused = 0;
    for (int i = 0; i < 200_000; i++) {
      Map<Object, Object> properties = new HashMap<>();
      for (int entries = 1 + random.nextInt(4); entries > 0; entries--) {
        String name = names.get(random.nextInt(names.size()));
        if (random.nextInt(50) == 0) {
          name = name.substring(0, random.nextInt(name.length())) + random.nextInt(3);
        }
        properties.put(name, VALUES.get(random.nextInt(VALUES.size())));
      }
      try {
        ShaperOptions options = ShaperOptions.from(properties);
        assertThat(ShaperOptions.from(options.effective()).toString())
            .as("seed %d, properties %s", SEED, properties)
            .isEqualTo(options.toString());
        accepted++;
      } catch (ConfigException | IllegalArgumentException e) {
        assertThat(properties.keySet())
            .as("seed %d, properties %s, message: %s", SEED, properties, e.getMessage())
            .anyMatch(name -> names(e.getMessage(), (String) name));
        refused++;
      }
    }
    assertThat(List.of(accepted, refused)).allMatch(count -> count > 5_000);
  }

  /** As the property is called, or in words where it contradicts another. */
  private static boolean names(String message, String property) {
    String words = property.replace(ShaperOptions.PREFIX, "").replace(".ms", "").replace('.', ' ');
    return Stream.of(property, words).anyMatch(message.toLowerCase(Locale.ROOT)::contains)
        || message.contains(property);
  }
}
