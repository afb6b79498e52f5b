package io.streamshaper;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.utils.Bytes;

/**
 * Queued records that are stored as one entry, neighbours in the order of arrival: to the changelog
 * an entry of many records is hardly dearer than one of a single record. A second entry, the
 * remainder, tells which of them have not left. Belongs to one task and its thread.
 *
 * <p>A block of one is stored as that record. Any other, format 2, big endian. Store key: sequence
 * of the first record (8). Store value: version (1), number of records (1); of each its index (1),
 * its store key and its value, both as length (2) and bytes; last the CRC-32C (4) of the store key
 * and all before it. Remainder, format 1. Store key: 0x80, store key of the block. Store value:
 * version (1), a bit for each index, the lowest for the first (8), CRC-32C (4) as above.
 */
final class Block {
  /** As many as a long has bits. */
  static final int MAX_RECORDS = Long.SIZE;

  /** Two fit into a batch of the producer. */
  static final int MAX_BYTES = 7 * 1024;

  /** A larger record is a block of its own: copying it costs more than an entry. */
  static final int MAX_SHARED_RECORD_BYTES = 512;

  /** Bounds what is stored, and held in memory, to so many times the records that remain. */
  private static final int MAX_WASTE = 4;

  private static final byte VERSION = 2;
  private static final byte REMAINDER_VERSION = 1;

  /** Sorts behind every block: sequences are positive. */
  private static final byte REMAINDER_PREFIX = (byte) 0x80;

  private static final int CHECKSUM_BYTES = Integer.BYTES;
  private static final int ENTRY_BYTES = 1 + 2 * Short.BYTES;
  private static final int REMAINDER_KEY_BYTES = 1 + Long.BYTES;
  private static final int REMAINDER_BYTES = 1 + Long.BYTES + CHECKSUM_BYTES;

  private final Bytes storeKey;

  /** Where in the value the values of the records are, by their indices. */
  private final short[] offsets;

  /** Records in the value. */
  private int records;

  /** A bit for each of them that has not left for good. */
  private long remaining;

  /** Null while only the store has it. */
  private byte[] value;

  /** Whether the store has a remainder. */
  private boolean hasRemainder;

  private Block(Bytes storeKey, int indices, byte[] value) {
    this.storeKey = storeKey;
    this.offsets = new short[indices];
    this.value = value;
  }

  /**
   * Takes in records from the given one on, as many as fit.
   *
   * @param endSequence the first that stays out
   */
  static Block of(QueuedRecord first, long endSequence) {
    int count = 0;
    long size = 1 + 1 + CHECKSUM_BYTES;
    QueuedRecord end = first;
    do {
      size += sizeOf(end);
      count++;
      end = end.newer;
    } while (count < MAX_RECORDS
        && end != null
        && end.sequence() < endSequence
        && Math.max(first.bytes(), end.bytes()) <= MAX_SHARED_RECORD_BYTES
        && size + sizeOf(end) <= MAX_BYTES);
    return count == 1 ? single(first, first.encoded()) : of(first, count, (int) size);
  }

  private static long sizeOf(QueuedRecord queued) {
    return ENTRY_BYTES + queued.storeKey().get().length + queued.bytes();
  }

  private static Block single(QueuedRecord queued, byte[] value) {
    Block block = new Block(queued.storeKey(), 1, value);
    block.take(queued, 0, 0);
    return block;
  }

  private static Block of(QueuedRecord first, int count, int size) {
    ByteBuffer out = ByteBuffer.allocate(size).put(VERSION).put((byte) count);
    Block block = new Block(QueuedRecord.storeKey(null, first.sequence()), count, out.array());
    QueuedRecord queued = first;
    for (int index = 0; index < count; index++) {
      byte[] key = queued.storeKey().get();
      out.put((byte) index).putShort((short) key.length).put(key);
      out.putShort((short) queued.bytes());
      int offset = out.position();
      queued.encode(out);
      block.take(queued, index, offset);
      queued = queued.newer;
    }
    out.putInt(checksum(block.storeKey, out));
    return block;
  }

  private void take(QueuedRecord queued, int index, int offset) {
    offsets[index] = (short) offset;
    remaining |= 1L << index;
    records++;
    queued.restIn(this, index);
  }

  /**
   * Reads what the store has under a key.
   *
   * @param remainder null if the store has none
   * @param restored takes the records that have not left, in the order of arrival
   * @throws SerializationException if it cannot be read; names the store, the key and what was
   *     found
   */
  static Block read(
      String store,
      Bytes storeKey,
      byte[] stored,
      Long remainder,
      Consumer<QueuedRecord> restored) {
    if (stored.length == 0 || stored[0] != VERSION) {
      QueuedRecord queued = QueuedRecord.read(store, storeKey, stored);
      Block block = single(queued, stored);
      restored.accept(queued);
      return block;
    }
    try {
      return parse(store, storeKey, stored, remainder, restored);
    } catch (IllegalArgumentException | IndexOutOfBoundsException | BufferUnderflowException e) {
      throw unreadable(store, storeKey, "a block of format " + VERSION, stored, e);
    }
  }

  private static Block parse(
      String store,
      Bytes storeKey,
      byte[] stored,
      Long remainder,
      Consumer<QueuedRecord> restored) {
    ByteBuffer in = checked(storeKey, Long.BYTES, stored);
    Block block = new Block(storeKey, MAX_RECORDS, stored);
    block.hasRemainder = remainder != null;
    for (int left = in.get(); left > 0; left--) {
      int index = Objects.checkIndex(in.get(), MAX_RECORDS);
      Bytes key = Bytes.wrap(bytes(in));
      byte[] value = bytes(in);
      if (remainder == null || (remainder & 1L << index) != 0) {
        QueuedRecord queued = QueuedRecord.read(store, key, value);
        block.take(queued, index, in.position() - value.length);
        restored.accept(queued);
      } else {
        block.records++;
      }
    }
    if (in.hasRemaining()) {
      throw new IllegalArgumentException();
    }
    return block;
  }

  /** A block of which the store has nothing but a remainder. */
  static Block gone(long sequence) {
    Block block = new Block(QueuedRecord.storeKey(null, sequence), 0, null);
    block.hasRemainder = true;
    return block;
  }

  /** The key under which it is stored. */
  Bytes storeKey() {
    return storeKey;
  }

  /** Its first record's place in the order of arrival. */
  long sequence() {
    return ByteBuffer.wrap(storeKey.get()).getLong();
  }

  /** The value under which it is stored; null while only the store has it. */
  byte[] value() {
    return value;
  }

  /** Has it hold what the store has; null: only the store. */
  void hold(byte[] stored) {
    value = stored;
  }

  /**
   * The value of a record, while the block's own is held.
   *
   * @throws SerializationException if there is none; names the store and the key
   */
  byte[] valueOf(String store, QueuedRecord queued) {
    if (offsets.length == 1) {
      return value;
    }
    int from = offsets[queued.index()];
    int to = from + (int) queued.bytes();
    if (to > value.length) {
      throw unreadable(store, storeKey, "a block of format " + VERSION, value, null);
    }
    return Arrays.copyOfRange(value, from, to);
  }

  /** Lets go of records for good: a bit for each index. */
  void leave(long indices) {
    remaining &= ~indices;
  }

  boolean isEmpty() {
    return remaining == 0;
  }

  /** Whether its value is in the store. */
  boolean isStored() {
    return records > 0;
  }

  boolean hasRemainder() {
    return hasRemainder;
  }

  /** Whether so many have left that it should be stored without them. */
  boolean isWasteful() {
    return MAX_WASTE * Long.bitCount(remaining) <= records;
  }

  /** Leaves out of the value what has left for good; what remains keeps its index. */
  void compact() {
    ByteBuffer in = ByteBuffer.wrap(value, 1 + 1, value.length - 1 - 1 - CHECKSUM_BYTES);
    ByteBuffer out = ByteBuffer.allocate(value.length);
    records = Long.bitCount(remaining);
    out.put(VERSION).put((byte) records);
    while (in.hasRemaining()) {
      int index = in.get();
      byte[] key = bytes(in);
      byte[] record = bytes(in);
      if ((remaining & 1L << index) != 0) {
        out.put((byte) index).putShort((short) key.length).put(key);
        out.putShort((short) record.length);
        offsets[index] = (short) out.position();
        out.put(record);
      }
    }
    out.putInt(checksum(storeKey, out));
    value = Arrays.copyOf(out.array(), out.position());
  }

  /** The key under which the remainder is stored. */
  Bytes remainderKey() {
    return remainderKey(sequence());
  }

  static Bytes remainderKey(long sequence) {
    ByteBuffer key = ByteBuffer.allocate(REMAINDER_KEY_BYTES);
    return Bytes.wrap(key.put(REMAINDER_PREFIX).putLong(sequence).array());
  }

  /** The value under which the remainder is stored. */
  byte[] remainder() {
    hasRemainder = true;
    ByteBuffer out = ByteBuffer.allocate(REMAINDER_BYTES).put(REMAINDER_VERSION).putLong(remaining);
    return out.putInt(checksum(remainderKey(), out)).array();
  }

  /** The block's sequence, from a remainder's key. */
  static long sequenceOfRemainder(Bytes key) {
    return ByteBuffer.wrap(key.get()).getLong(1);
  }

  /**
   * A bit for each index that remains.
   *
   * @throws SerializationException if it cannot be read; names the store, the key and what was
   *     found
   */
  static long readRemainder(String store, Bytes key, byte[] stored) {
    try {
      ByteBuffer in = checked(key, REMAINDER_KEY_BYTES, stored);
      if (stored.length != REMAINDER_BYTES || stored[0] != REMAINDER_VERSION) {
        throw new IllegalArgumentException();
      }
      return in.getLong();
    } catch (IllegalArgumentException | BufferUnderflowException e) {
      throw unreadable(store, key, "a remainder of format " + REMAINDER_VERSION, stored, e);
    }
  }

  /** What is between the version and the checksum. */
  private static ByteBuffer checked(Bytes key, int keyBytes, byte[] stored) {
    ByteBuffer in = ByteBuffer.wrap(stored);
    in.position(Math.max(1, stored.length - CHECKSUM_BYTES));
    if (key.get().length != keyBytes || checksum(key, in) != in.getInt()) {
      throw new IllegalArgumentException();
    }
    return in.limit(in.position() - CHECKSUM_BYTES).position(1);
  }

  /** Of a key, and of what has been read or written. */
  private static int checksum(Bytes key, ByteBuffer buffer) {
    CRC32C crc = new CRC32C();
    crc.update(key.get());
    crc.update(buffer.duplicate().flip());
    return (int) crc.getValue();
  }

  /** Checks the length before it allocates. */
  private static byte[] bytes(ByteBuffer in) {
    int length = in.getShort();
    if (length < 0 || length > in.remaining()) {
      throw new IllegalArgumentException();
    }
    byte[] bytes = new byte[length];
    in.get(bytes);
    return bytes;
  }

  private static SerializationException unreadable(
      String store, Bytes key, String expected, byte[] stored, RuntimeException cause) {
    return new SerializationException(
        "store %s, key %s: must be %s, was %d bytes that are none"
            .formatted(store, HexFormat.of().formatHex(key.get()), expected, stored.length),
        cause);
  }
}
