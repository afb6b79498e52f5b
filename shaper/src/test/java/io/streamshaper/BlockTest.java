package io.streamshaper;

import static io.streamshaper.TestTopology.bytes;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.streamshaper.aqm.Packet;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32C;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.Test;

/** Format 2: the bytes in this file must be readable for ever. */
class BlockTest {
  private static final Bytes KEY = Bytes.wrap(hex("0000000000000001"));
  private static final byte[] STORED =
      hex(
          "0202"
              + ("00" + "0009" + "000000000000000166")
              + ("0014" + "010009000000000000000100000001761295c205")
              + ("01" + "0009" + "000000000000000266")
              + ("0014" + "01000900000000000000010000000177f145477b")
              + "6517b592");
  private static final Bytes REMAINDER_KEY = Bytes.wrap(hex("800000000000000001"));
  private static final byte[] REMAINDER = hex("01" + "0000000000000002" + "ba724569");

  @Test
  void aRecordAloneIsStoredAsItself() {
    QueuedRecord queued = chain(bytes("v")).get(0);
    byte[] alone = queued.encoded();
    Block block = Block.of(queued, Long.MAX_VALUE);
    assertThat(block.storeKey()).isEqualTo(queued.storeKey());
    assertThat(block.value()).isEqualTo(alone);
    assertThat(queued.block()).isSameAs(block);
    assertThat(values(block.storeKey(), alone, null)).containsExactly("v");
  }

  @Test
  void aBlockIsWrittenAsEver() {
    Block block = Block.of(chain(bytes("v"), bytes("w")).get(0), Long.MAX_VALUE);
    assertThat(block.storeKey()).isEqualTo(KEY);
    assertThat(hex(block.value())).isEqualTo(hex(STORED));
    assertThat(values(KEY, STORED, null)).containsExactly("v", "w");
  }

  @Test
  void aRemainderIsWrittenAsEver() {
    Block block = Block.of(chain(bytes("v"), bytes("w")).get(0), Long.MAX_VALUE);
    block.leave(0b01);
    assertThat(block.remainderKey()).isEqualTo(REMAINDER_KEY);
    assertThat(hex(block.remainder())).isEqualTo(hex(REMAINDER));
    assertThat(Block.sequenceOfRemainder(REMAINDER_KEY)).isEqualTo(1);
    long remainder = Block.readRemainder("s", REMAINDER_KEY, REMAINDER);
    assertThat(values(KEY, STORED, remainder)).containsExactly("w");
  }

  @Test
  void aBlockEndsAheadOfTheSequenceThatItIsTold() {
    List<QueuedRecord> queue = chain(bytes("a"), bytes("b"), bytes("c"), bytes("d"));
    Block block = Block.of(queue.get(1), queue.get(3).sequence());
    assertThat(queue.stream().map(QueuedRecord::block)).containsExactly(null, block, block, null);
  }

  /** Whatever leaves, in whatever steps. */
  @Property(tries = 500)
  void whatIsReadIsWhatRemains(
      @ForAll @Size(min = 1, max = 100) List<@IntRange(max = 600) Integer> sizes,
      @ForAll @Size(max = 5) List<Long> departures) {
    List<QueuedRecord> queue = chain(sizes.stream().map(byte[]::new).toArray(byte[][]::new));
    QueuedRecord first = queue.get(0);
    while (first != null) {
      Block block = Block.of(first, Long.MAX_VALUE);
      List<QueuedRecord> own = queue.stream().filter(q -> q.block() == block).toList();
      assertThat(own.get(0)).isSameAs(first);
      assertThat(own).hasSizeLessThanOrEqualTo(Block.MAX_RECORDS);
      assertThat(own.size() == 1 || block.value().length <= Block.MAX_BYTES).isTrue();
      assertThat(own.size() == 1 || own.stream().allMatch(q -> q.bytes() <= 512)).isTrue();
      first = own.get(own.size() - 1).newer;
      long left = 0;
      for (int step = 0; step < departures.size() && !block.isEmpty(); step++) {
        left |= departures.get(step);
        block.leave(departures.get(step));
        if (own.size() > 1 && !block.isEmpty()) {
          checkStep(block, own, left);
        }
      }
    }
  }

  private static void checkStep(Block block, List<QueuedRecord> own, long left) {
    if (block.isWasteful()) {
      block.compact();
    }
    List<QueuedRecord> remaining = remaining(own, left);
    assertThat((int) block.value()[1]).as("records stored").isLessThan(4 * remaining.size());
    long remainder = Block.readRemainder("s", block.remainderKey(), block.remainder());
    List<QueuedRecord> read = new ArrayList<>();
    Block again = Block.read("s", block.storeKey(), block.value(), remainder, read::add);
    assertThat(read).hasSameSizeAs(remaining);
    for (int i = 0; i < read.size(); i++) {
      assertThat(read.get(i).storeKey()).isEqualTo(remaining.get(i).storeKey());
      assertThat(again.valueOf("s", read.get(i))).isEqualTo(block.valueOf("s", remaining.get(i)));
      assertThat(read.get(i).bytes()).isEqualTo(again.valueOf("s", read.get(i)).length);
    }
  }

  private static List<QueuedRecord> remaining(List<QueuedRecord> own, long left) {
    return own.stream().filter(queued -> (left & 1L << queued.index()) == 0).toList();
  }

  @Test
  void bytesThatSomethingHappenedToAreRefusedAndNamed() {
    long seed = 20261205;
    Random random = new Random(seed);
    for (int i = 0; i < 200_000; i++) {
      boolean remainder = i % 4 == 0;
      byte[] stored = remainder ? REMAINDER : STORED;
      byte[] mutated = mutate(random, stored);
      if (Arrays.equals(mutated, stored)) {
        continue;
      }
      Bytes key = remainder ? REMAINDER_KEY : KEY;
      assertThatThrownBy(() -> read(key, mutated))
          .as("seed %d, mutation %d: %s", seed, i, hex(mutated))
          .isInstanceOf(SerializationException.class)
          .hasMessageStartingWith("store s, key " + hex(key.get()) + ": must be a ");
    }
  }

  /** So that what is behind the checksum has to hold. */
  @Test
  void bytesWithAFittingChecksumAreRefusedOrWellFormed() {
    long seed = 4711;
    Random random = new Random(seed);
    for (int i = 0; i < 200_000; i++) {
      byte[] mutated = withChecksum(KEY, mutate(random, STORED));
      try {
        read(KEY, mutated);
      } catch (SerializationException e) {
        assertThat(e).hasMessageStartingWith("store s, key ");
      } catch (RuntimeException e) {
        throw new AssertionError("seed %d, mutation %d: %s".formatted(seed, i, hex(mutated)), e);
      }
    }
  }

  @Test
  void aBlockUnderAnotherKeyIsRefused() {
    for (String key : List.of("0000000000000002", "000000000000000166")) {
      assertThatThrownBy(() -> read(Bytes.wrap(hex(key)), STORED))
          .hasMessage(
              "store s, key " + key + ": must be a block of format 2, was 74 bytes that are none");
    }
  }

  private static void read(Bytes key, byte[] stored) {
    if (key.get()[0] < 0) {
      Block.readRemainder("s", key, stored);
    } else {
      Block.read("s", key, stored, null, queued -> {});
    }
  }

  private static byte[] mutate(Random random, byte[] stored) {
    byte[] mutated = stored.clone();
    switch (random.nextInt(4)) {
      case 0 -> mutated = Arrays.copyOf(mutated, random.nextInt(mutated.length + 5));
      case 1 -> {
        int[] numbers = {Integer.MAX_VALUE, Integer.MIN_VALUE, -1, 0, 1, random.nextInt()};
        int at = random.nextInt(mutated.length - 3);
        ByteBuffer.wrap(mutated).putInt(at, numbers[random.nextInt(numbers.length)]);
      }
      case 2 -> mutated[random.nextInt(mutated.length)] = (byte) random.nextInt();
      default -> mutated[random.nextInt(mutated.length)] ^= (byte) (1 << random.nextInt(8));
    }
    return mutated;
  }

  private static byte[] withChecksum(Bytes key, byte[] stored) {
    int length = stored.length - Integer.BYTES;
    if (length < 0) {
      return stored;
    }
    CRC32C crc = new CRC32C();
    crc.update(key.get());
    crc.update(stored, 0, length);
    ByteBuffer.wrap(stored).putInt(length, (int) crc.getValue());
    return stored;
  }

  private static List<String> values(Bytes key, byte[] stored, Long remainder) {
    List<QueuedRecord> queue = new ArrayList<>();
    Block block = Block.read("s", key, stored, remainder, queue::add);
    ByteArrayDeserializer raw = new ByteArrayDeserializer();
    return queue.stream()
        .map(queued -> queued.record("s", block.valueOf("s", queued), "t", new Scratch(), raw, raw))
        .map(record -> TestTopology.text(record.value()))
        .toList();
  }

  /** Records of one flow in the order of arrival, with sequences from 1 on. */
  private static List<QueuedRecord> chain(byte[]... values) {
    List<QueuedRecord> queue = new ArrayList<>();
    QueuedRecord.Terms terms = new QueuedRecord.Terms(1, 1, false, Packet.NEVER);
    for (byte[] value : values) {
      Record<byte[], byte[]> record = new Record<>(null, value, 1);
      Bytes flow = Bytes.wrap(bytes("f"));
      QueuedRecord queued =
          QueuedRecord.resting(flow, queue.size() + 1, terms, record, null, value);
      if (!queue.isEmpty()) {
        queue.get(queue.size() - 1).newer = queued;
      }
      queue.add(queued);
    }
    return queue;
  }

  private static byte[] hex(String text) {
    return HexFormat.of().parseHex(text);
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }
}
