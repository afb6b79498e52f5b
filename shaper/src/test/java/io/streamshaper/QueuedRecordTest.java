package io.streamshaper;

import static io.streamshaper.TestTopology.bytes;
import static io.streamshaper.TestTopology.headers;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.streamshaper.aqm.Packet;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32C;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.Test;

/** Format 1: the bytes in this file must be readable for ever. */
class QueuedRecordTest {
  private static final long NOW_MS = 1_772_600_767_000L;
  private static final int CHECKSUM_BYTES = Integer.BYTES;

  /** All that a record at rest consists of. */
  @SuppressWarnings("ArrayRecordComponent") // compared by describe()
  record Sample(
      byte[] flow,
      long sequence,
      QueuedRecord.Terms terms,
      long timestampMs,
      byte[] key,
      byte[] value,
      Headers headers) {

    QueuedRecord queued() {
      Record<byte[], byte[]> record = new Record<>(key, value, timestampMs, headers);
      return QueuedRecord.resting(
          flow == null ? null : Bytes.wrap(flow), sequence, terms, record, key, value);
    }

    String describe() {
      return QueuedRecordTest.describe(
          flow,
          sequence,
          terms.enqueueMs() * QueuedRecord.NANOS_PER_MS,
          terms.cost(),
          terms.markable(),
          terms.expiresNanos(),
          new Record<>(key, value, timestampMs, headers));
    }
  }

  private static final Sample PLAIN =
      new Sample(
          bytes("k"),
          0x0102030405060708L,
          terms(NOW_MS),
          NOW_MS,
          bytes("k"),
          bytes("v"),
          headers());

  private static final Sample FULL =
      new Sample(
          bytes("flow"),
          1,
          new QueuedRecord.Terms(NOW_MS + 5, 7, true, 123_456_789),
          NOW_MS,
          bytes("key"),
          bytes("value"),
          headers()
              .add("a", bytes("1"))
              .add("b", null)
              .add("a", new byte[0])
              .add("\u00e9", new byte[] {-1}));

  private static final Sample NULLS = new Sample(null, 2, terms(0), 0, null, null, headers());

  private static final Sample KEY_WITHOUT_FLOW =
      new Sample(null, 3, terms(NOW_MS), Long.MAX_VALUE, bytes("k"), new byte[0], headers());

  private static final Sample EMPTY_KEY =
      new Sample(new byte[0], 4, terms(1), 1, new byte[0], null, headers());

  private static QueuedRecord.Terms terms(long enqueueMs) {
    return new QueuedRecord.Terms(enqueueMs, 1, false, Packet.NEVER);
  }

  @Test
  void aPlainRecordIsWrittenAsEver() {
    checkGolden(PLAIN, "01020304050607086b", "01000f0000019cb73d3218000000017633b1f15d");
  }

  @Test
  void aRecordWithEverythingIsWrittenAsEver() {
    checkGolden(
        FULL,
        "0000000000000001666c6f77",
        "0101fb0000019cb73d32180000019cb73d321d00000000075bcd150000000000000007000000036b657900000005"
            + "76616c756500000004000000016100000001310000000162ffffffff0000000161000000000000"
            + "0002c3a900000001ff2395decc");
  }

  @Test
  void aRecordOfNullsIsWrittenAsEver() {
    checkGolden(NULLS, "0000000000000002", "0100000000000000000000400130fc");
  }

  @Test
  void aKeyWithoutAFlowIsWrittenAsEver() {
    checkGolden(
        KEY_WITHOUT_FLOW,
        "0000000000000003",
        "01002a7fffffffffffffff0000019cb73d3218000000016b000000009840be44");
  }

  @Test
  void anEmptyKeyIsWrittenAsEver() {
    checkGolden(EMPTY_KEY, "0000000000000004", "0100070000000000000001d22e8545");
  }

  /** One at a time, so that no two can change places. */
  @Test
  void eachFieldAloneIsWrittenAsEver() {
    checkGolden(
        withOnly(5, new QueuedRecord.Terms(1, 1, false, -7), null, headers()),
        "0000000000000005",
        "0100400000000000000001fffffffffffffff91d764b33");
    checkGolden(
        withOnly(6, new QueuedRecord.Terms(1, 2, false, Packet.NEVER), null, headers()),
        "0000000000000006",
        "010080000000000000000100000000000000028014035e");
    checkGolden(
        withOnly(7, terms(3), null, headers()),
        "0000000000000007",
        "01002000000000000000010000000000000003e1f6d664");
    checkGolden(
        withOnly(8, new QueuedRecord.Terms(1, 1, true, Packet.NEVER), null, headers()),
        "0000000000000008",
        "010100000000000000000195bdb74b");
    checkGolden(
        withOnly(9, terms(1), bytes("v"), headers()),
        "0000000000000009",
        "01000800000000000000010000000176dda4350c");
    checkGolden(
        withOnly(10, terms(1), null, headers().add("h", null)),
        "000000000000000a",
        "0100100000000000000001000000010000000168ffffffffe5992ad8");
  }

  private static Sample withOnly(
      long sequence, QueuedRecord.Terms terms, byte[] value, Headers headers) {
    return new Sample(null, sequence, terms, 1, null, value, headers);
  }

  private static void checkGolden(Sample sample, String storeKey, String stored) {
    QueuedRecord queued = sample.queued();
    assertThat(HexFormat.of().formatHex(queued.storeKey().get())).isEqualTo(storeKey);
    assertThat(HexFormat.of().formatHex(queued.encoded())).isEqualTo(stored);
    Bytes key = Bytes.wrap(HexFormat.of().parseHex(storeKey));
    assertThat(describe(key, HexFormat.of().parseHex(stored))).isEqualTo(sample.describe());
  }

  @Property(tries = 2000)
  void whatIsWrittenIsWhatIsRead(@ForAll("samples") Sample sample) {
    QueuedRecord queued = sample.queued();
    assertThat(describe(queued.storeKey(), queued.encoded())).isEqualTo(sample.describe());
    assertThat(queued.bytes()).isEqualTo(queued.encoded().length);
    QueuedRecord read = QueuedRecord.read("s", queued.storeKey(), queued.encoded());
    assertThat(read.storeKey()).isEqualTo(queued.storeKey());
  }

  @Provide
  Arbitrary<Sample> samples() {
    Arbitrary<byte[]> bytes = Arbitraries.bytes().array(byte[].class).ofMaxSize(40).injectNull(0.2);
    Arbitrary<Long> times = Arbitraries.longs().between(0, Long.MAX_VALUE);
    Arbitrary<Headers> someHeaders =
        Combinators.combine(Arbitraries.strings().ofMaxLength(5), bytes)
            .as((name, value) -> new SimpleEntry<>(legal(name), value))
            .list()
            .ofMaxSize(5)
            .map(
                list -> {
                  Headers all = headers();
                  list.forEach(header -> all.add(header.getKey(), header.getValue()));
                  return all;
                });
    Arbitrary<QueuedRecord.Terms> terms =
        Combinators.combine(
                Arbitraries.longs().between(0, Long.MAX_VALUE / QueuedRecord.NANOS_PER_MS),
                Arbitraries.oneOf(Arbitraries.just(1L), times.filter(cost -> cost > 0)),
                Arbitraries.of(true, false),
                Arbitraries.oneOf(Arbitraries.just(Packet.NEVER), Arbitraries.longs()))
            .as(QueuedRecord.Terms::new);
    return Combinators.combine(bytes, times, terms, times, bytes, bytes, someHeaders)
        .as(Sample::new);
  }

  /** Half a surrogate pair is no character: UTF-8 has no bytes for it, here or in Kafka. */
  private static String legal(String text) {
    return new String(bytes(text), StandardCharsets.UTF_8);
  }

  @Test
  void aMillionMutationsAreRefusedOrHarmless() {
    long seed = 20260304;
    Random random = new Random(seed);
    List<QueuedRecord> originals = originals();
    for (int i = 0; i < 500_000; i++) {
      QueuedRecord original = originals.get(random.nextInt(originals.size()));
      byte[] mutated = mutate(random, original.encoded(), originals);
      if (Arrays.equals(mutated, original.encoded())) {
        continue;
      }
      try {
        QueuedRecord.read("the-store", original.storeKey(), mutated);
        throw new AssertionError(
            "seed %d, mutation %d: read %s".formatted(seed, i, HexFormat.of().formatHex(mutated)));
      } catch (SerializationException e) {
        checkMessage(e, original.storeKey());
      }
    }
  }

  /** With a checksum that fits, so that what is behind it has to hold. */
  @Test
  void aMillionMutationsWithAFittingChecksumAreRefusedOrWellFormed() {
    long seed = 4711;
    Random random = new Random(seed);
    List<QueuedRecord> originals = originals();
    int wellFormed = 0;
    for (int i = 0; i < 500_000; i++) {
      QueuedRecord original = originals.get(random.nextInt(originals.size()));
      byte[] key = original.storeKey().get();
      if (random.nextInt(8) == 0) {
        key = mutate(random, key, originals);
      }
      byte[] mutated = withChecksum(key, mutate(random, original.encoded(), originals));
      try {
        Bytes storeKey = Bytes.wrap(key);
        QueuedRecord queued = QueuedRecord.read("the-store", storeKey, mutated);
        assertThat(queued.storeKey()).isEqualTo(storeKey);
        Record<byte[], byte[]> record = recordOf(queued, mutated);
        assertThat(record.timestamp()).isNotNegative();
        assertThat(queued.cost()).isPositive();
        wellFormed++;
      } catch (SerializationException e) {
        checkMessage(e, Bytes.wrap(key));
      } catch (RuntimeException | AssertionError e) {
        throw new AssertionError(
            "seed %d, mutation %d: %s, %s"
                .formatted(
                    seed, i, HexFormat.of().formatHex(key), HexFormat.of().formatHex(mutated)),
            e);
      }
    }
    assertThat(wellFormed).isPositive();
  }

  private static List<QueuedRecord> originals() {
    List<QueuedRecord> originals = new ArrayList<>();
    for (Sample sample : List.of(PLAIN, FULL, NULLS, KEY_WITHOUT_FLOW, EMPTY_KEY)) {
      originals.add(sample.queued());
    }
    return originals;
  }

  private static byte[] mutate(Random random, byte[] bytes, List<QueuedRecord> others) {
    byte[] mutated = bytes.clone();
    switch (random.nextInt(6)) {
      case 0 -> mutated = Arrays.copyOf(mutated, random.nextInt(mutated.length + 1));
      case 1 -> {
        for (int flips = 1 + random.nextInt(3); flips > 0 && mutated.length > 0; flips--) {
          mutated[random.nextInt(mutated.length)] ^= (byte) (1 << random.nextInt(8));
        }
      }
      case 2 -> {
        byte[] other = others.get(random.nextInt(others.size())).encoded();
        int cut = random.nextInt(mutated.length + 1);
        int from = random.nextInt(other.length);
        mutated = Arrays.copyOf(mutated, cut + other.length - from);
        System.arraycopy(other, from, mutated, cut, other.length - from);
      }
      case 3 -> {
        int[] lengths = {Integer.MAX_VALUE, Integer.MIN_VALUE, -1, -2, 0, 1, random.nextInt()};
        if (mutated.length >= Integer.BYTES) {
          int at = random.nextInt(mutated.length - Integer.BYTES + 1);
          ByteBuffer.wrap(mutated).putInt(at, lengths[random.nextInt(lengths.length)]);
        }
      }
      case 4 -> {
        int at = random.nextInt(mutated.length + 1);
        byte[] longer = new byte[mutated.length + 1 + random.nextInt(8)];
        random.nextBytes(longer);
        System.arraycopy(mutated, 0, longer, 0, at);
        System.arraycopy(
            mutated, at, longer, longer.length - (mutated.length - at), mutated.length - at);
        mutated = longer;
      }
      default -> {
        for (int i = random.nextInt(mutated.length + 1); i < mutated.length; i++) {
          mutated[i] = (byte) random.nextInt();
        }
      }
    }
    return mutated;
  }

  private static void checkMessage(SerializationException e, Bytes storeKey) {
    assertThat(e.getMessage())
        .startsWith(
            "store the-store, key "
                + HexFormat.of().formatHex(storeKey.get())
                + ": must be a queued record of format 1, was ");
  }

  @Test
  void aNewerFormatIsNamed() {
    byte[] newer = FULL.queued().encoded();
    newer[0] = 2;
    assertRefused(newer, "of format 2");
    assertRefused(withChecksum(FULL.queued().storeKey().get(), newer), "of format 2");
  }

  @Test
  void aRecordUnderAnotherKeyIsRefused() {
    assertThatThrownBy(
            () ->
                QueuedRecord.read("the-store", PLAIN.queued().storeKey(), FULL.queued().encoded()))
        .isInstanceOf(SerializationException.class)
        .hasMessageEndingWith("with a wrong checksum");
  }

  @Test
  void nothingAtAllIsRefused() {
    assertRefused(new byte[0], "0 bytes, cut short");
    assertRefused(Arrays.copyOf(FULL.queued().encoded(), 20), "20 bytes with a wrong checksum");
  }

  /** What the header of a golden record says at an offset, and what it may not say. */
  @Test
  void lengthsAndNumbersAreCheckedBeforeTheyAreBelieved() {
    int keyAt = 1 + 2 + 8 + 8 + 8 + 8;
    int headersAt = keyAt + 4 + 3 + 4 + 5;
    for (int at : new int[] {keyAt, keyAt + 4 + 3, headersAt, headersAt + 4, headersAt + 9}) {
      for (int length : new int[] {Integer.MAX_VALUE, Integer.MIN_VALUE, -2, 0x01000000}) {
        byte[] stored = FULL.queued().encoded();
        ByteBuffer.wrap(stored).putInt(at, length);
        assertRefusedCheaply(stored);
      }
    }
    for (int at : new int[] {keyAt, keyAt + 4 + 3, headersAt, headersAt + 4}) {
      byte[] stored = FULL.queued().encoded();
      ByteBuffer.wrap(stored).putInt(at, -1);
      assertRefusedCheaply(stored);
    }
  }

  @Test
  void numbersThatNoRecordCanHaveAreRefused() {
    for (long cost : new long[] {0, -1, Long.MIN_VALUE}) {
      assertRefusedCheaply(with(1 + 2 + 8 + 8 + 8, cost));
    }
    for (long timestampMs : new long[] {-1, Long.MIN_VALUE}) {
      assertRefusedCheaply(with(1 + 2, timestampMs));
    }
    for (long enqueueMs : new long[] {-1, Long.MIN_VALUE, Long.MAX_VALUE}) {
      assertRefusedCheaply(with(1 + 2 + 8, enqueueMs));
    }
  }

  private static byte[] with(int at, long number) {
    byte[] stored = FULL.queued().encoded();
    ByteBuffer.wrap(stored).putLong(at, number);
    return stored;
  }

  @Test
  void flagsThatContradictTheKeyAreRefused() {
    byte[] key = PLAIN.queued().storeKey().get();
    for (int flags : new int[] {1 << 9, 1 << 15, 0b1110, 0b1010, 0b1101}) {
      byte[] stored = PLAIN.queued().encoded();
      ByteBuffer.wrap(stored).putShort(1, (short) flags);
      assertThatThrownBy(
              () -> QueuedRecord.read("the-store", Bytes.wrap(key), withChecksum(key, stored)))
          .as("flags %s", Integer.toBinaryString(flags))
          .isInstanceOf(SerializationException.class);
    }
  }

  private static void assertRefused(byte[] stored, String was) {
    assertThatThrownBy(() -> QueuedRecord.read("the-store", FULL.queued().storeKey(), stored))
        .isInstanceOf(SerializationException.class)
        .hasMessage(
            "store the-store, key 0000000000000001666c6f77: must be a queued record of format 1,"
                + " was "
                + was);
  }

  private static void assertRefusedCheaply(byte[] mutated) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    Bytes storeKey = FULL.queued().storeKey();
    byte[] stored = withChecksum(storeKey.get(), mutated);
    long before = threads.getCurrentThreadAllocatedBytes();
    assertThatThrownBy(() -> QueuedRecord.read("the-store", storeKey, stored))
        .as(HexFormat.of().formatHex(stored))
        .isInstanceOf(SerializationException.class);
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(4_000_000);
  }

  private static byte[] withChecksum(byte[] storeKey, byte[] stored) {
    if (stored.length < CHECKSUM_BYTES) {
      return stored;
    }
    CRC32C crc = new CRC32C();
    crc.update(storeKey);
    crc.update(stored, 0, stored.length - CHECKSUM_BYTES);
    byte[] fitting = stored.clone();
    ByteBuffer.wrap(fitting).putInt(fitting.length - CHECKSUM_BYTES, (int) crc.getValue());
    return fitting;
  }

  private static Record<byte[], byte[]> recordOf(QueuedRecord queued, byte[] stored) {
    ByteArrayDeserializer raw = new ByteArrayDeserializer();
    return queued.record("the-store", stored, "topic", new Scratch(), raw, raw);
  }

  private static String describe(Bytes storeKey, byte[] stored) {
    QueuedRecord queued = QueuedRecord.read("the-store", storeKey, stored);
    return describe(
        queued.flow() == null ? null : queued.flow().get(),
        queued.sequence(),
        queued.timestampNanos(),
        queued.cost(),
        queued.markable(),
        queued.expiresNanos(),
        recordOf(queued, stored));
  }

  private static String describe(
      byte[] flow,
      long sequence,
      long enqueueNanos,
      long cost,
      boolean markable,
      long expiresNanos,
      Record<byte[], byte[]> record) {
    return String.join(
        "; ",
        Arrays.toString(flow),
        "" + sequence,
        "" + enqueueNanos,
        "" + cost,
        "" + markable,
        "" + expiresNanos,
        "" + record.timestamp(),
        Arrays.toString(record.key()),
        Arrays.toString(record.value()),
        Arrays.toString(record.headers().toArray()));
  }
}
