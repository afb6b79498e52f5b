package io.streamshaper;

import io.streamshaper.aqm.Packet;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.zip.CRC32C;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.Record;

/**
 * A record at rest: what the scheduler needs of it, and its bytes. Not thread-safe.
 *
 * <p>Format 1, big endian. Store key: sequence (8), flow. Store value: version (1), flags (2),
 * timestamp in ms (8), then as flagged: enqueue time in ms (8), expiry in ns (8), cost (8), key
 * (length 4, bytes), value (length 4, bytes), headers (number 4; of each the name and the value as
 * length 4 and bytes, length -1 for null); last the CRC-32C (4) of the store key and all before it.
 * A key that equals the flow is not stored twice.
 */
final class QueuedRecord extends Packet {
  static final long NANOS_PER_MS = 1_000_000;

  private static final byte VERSION = 1;

  private static final int HAS_FLOW = 1;
  private static final int HAS_KEY = 1 << 1;
  private static final int KEY_IS_FLOW = 1 << 2;
  private static final int HAS_VALUE = 1 << 3;
  private static final int HAS_HEADERS = 1 << 4;
  private static final int HAS_ENQUEUE_TIME = 1 << 5;
  private static final int HAS_EXPIRY = 1 << 6;
  private static final int HAS_COST = 1 << 7;
  private static final int MARKABLE = 1 << 8;
  private static final int ALL_FLAGS = (1 << 9) - 1;

  private static final int CHECKSUM_BYTES = Integer.BYTES;
  private static final int PREFIX_BYTES = 1 + Short.BYTES + Long.BYTES;
  private static final int NULL_LENGTH = -1;

  /** The sequence and the flow; the same array that the store has. */
  private final byte[] storeKey;

  private final boolean hasFlow;

  /** As it came; null once it is in a block: most leave before a commit, and never are. */
  private Content content;

  /** Where it is stored; null until it is. */
  private Block block;

  private byte index;

  /** Neighbours in the order of arrival. */
  QueuedRecord older;

  QueuedRecord newer;

  private QueuedRecord(byte[] storeKey, boolean hasFlow, Terms terms, long bytes) {
    super(terms.enqueueMs * NANOS_PER_MS, terms.cost, bytes, terms.markable, terms.expiresNanos);
    this.storeKey = storeKey;
    this.hasFlow = hasFlow;
  }

  /** What the shaper found out about a record on its arrival. */
  record Terms(long enqueueMs, long cost, boolean markable, long expiresNanos) {
    long sojournNanos(long nowNanos) {
      return Packet.sojournNanos(enqueueMs * NANOS_PER_MS, nowNanos);
    }
  }

  /**
   * A record that comes to rest.
   *
   * @param flow the serialised flow; null is the flow of records without a key
   * @param record for its timestamp and headers
   * @param key the serialised key, may be null
   * @param value the serialised value, may be null
   */
  static QueuedRecord resting(
      Bytes flow, long sequence, Terms terms, Record<?, ?> record, byte[] key, byte[] value) {
    byte[] storeKey = storeKey(flow, sequence).get();
    Content content = Content.of(flow, terms, record, key, value);
    QueuedRecord queued = new QueuedRecord(storeKey, flow != null, terms, content.size());
    queued.content = content;
    return queued;
  }

  /**
   * Reads what the store has under a key.
   *
   * @throws SerializationException if it cannot be read; names the store, the key and what was
   *     found
   */
  static QueuedRecord read(String store, Bytes storeKey, byte[] stored) {
    Stored read = Stored.of(store, storeKey, stored);
    QueuedRecord queued =
        new QueuedRecord(storeKey.get(), read.content.has(HAS_FLOW), read.terms, stored.length);
    return queued;
  }

  /** The serialised flow; null is the flow of records without a key. */
  Bytes flow() {
    return hasFlow ? flowOf(storeKey) : null;
  }

  /** Its place in the order of arrival; never reused. */
  long sequence() {
    return ByteBuffer.wrap(storeKey).getLong();
  }

  /** The key under which it is stored. */
  Bytes storeKey() {
    return Bytes.wrap(storeKey);
  }

  /**
   * The record as it came: key, value, timestamp and headers.
   *
   * @param stored its bytes; does not matter until it is in a block
   * @param topic what the deserializers are told
   * @throws SerializationException if the bytes cannot be read
   */
  <K, V> Record<K, V> record(
      String store,
      byte[] stored,
      String topic,
      Scratch scratch,
      Deserializer<? extends K> keys,
      Deserializer<? extends V> values) {
    Content found = content == null ? Stored.of(store, storeKey(), stored).content : content;
    byte[] keyBytes = found.key(storeKey);
    Headers given = scratch.of(found.headers);
    K key = keyBytes == null ? null : keys.deserialize(topic, given, keyBytes);
    V recordValue = found.value == null ? null : values.deserialize(topic, given, found.value);
    return new Record<>(key, recordValue, found.timestampMs, found.headers);
  }

  /** Moves into a block, which has its bytes from now on. */
  void restIn(Block block, int index) {
    this.block = block;
    this.index = (byte) index;
    content = null;
  }

  /** Where it is stored; null until it is. */
  Block block() {
    return block;
  }

  /** Its number in the block. */
  int index() {
    return index;
  }

  /** The value under which it is stored, alone; must not be in a block yet. */
  byte[] encoded() {
    ByteBuffer out = ByteBuffer.allocate((int) bytes());
    encode(out);
    return out.array();
  }

  static Bytes storeKey(Bytes flow, long sequence) {
    int flowLength = flow == null ? 0 : flow.get().length;
    ByteBuffer buffer = ByteBuffer.allocate(Long.BYTES + flowLength).putLong(sequence);
    if (flow != null) {
      buffer.put(flow.get());
    }
    return Bytes.wrap(buffer.array());
  }

  private static Bytes flowOf(byte[] storeKey) {
    return Bytes.wrap(Arrays.copyOfRange(storeKey, Long.BYTES, storeKey.length));
  }

  /** Appends its value; must not be in a block yet. */
  void encode(ByteBuffer out) {
    int start = out.position();
    out.put(VERSION).putShort((short) content.flags).putLong(content.timestampMs);
    if (content.has(HAS_ENQUEUE_TIME)) {
      out.putLong(timestampNanos() / NANOS_PER_MS);
    }
    if (content.has(HAS_EXPIRY)) {
      out.putLong(expiresNanos());
    }
    if (content.has(HAS_COST)) {
      out.putLong(cost());
    }
    if (content.key != null) {
      putBytes(out, content.key);
    }
    if (content.value != null) {
      putBytes(out, content.value);
    }
    if (content.has(HAS_HEADERS)) {
      Header[] headers = content.headers.toArray();
      out.putInt(headers.length);
      for (Header header : headers) {
        putBytes(out, header.key().getBytes(StandardCharsets.UTF_8));
        putBytes(out, header.value());
      }
    }
    out.putInt(checksum(storeKey, out.duplicate().flip().position(start)));
  }

  private static int sizeOf(byte[] bytes) {
    return Integer.BYTES + (bytes == null ? 0 : bytes.length);
  }

  private static void putBytes(ByteBuffer out, byte[] bytes) {
    if (bytes == null) {
      out.putInt(NULL_LENGTH);
    } else {
      out.putInt(bytes.length).put(bytes);
    }
  }

  private static int checksum(byte[] storeKey, ByteBuffer stored) {
    CRC32C crc = new CRC32C();
    crc.update(storeKey);
    crc.update(stored);
    return (int) crc.getValue();
  }

  /**
   * The parts of a record that the scheduler does not need.
   *
   * @param key null also if it is the flow
   * @param headers null if there are none
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Content(int flags, long timestampMs, byte[] key, byte[] value, Headers headers) {

    /** Copies: serializers may use an array again, and headers are everybody's. */
    static Content of(Bytes flow, Terms terms, Record<?, ?> record, byte[] key, byte[] value) {
      boolean keyIsFlow = key != null && flow != null && Arrays.equals(key, flow.get());
      boolean hasHeaders = record.headers().toArray().length > 0;
      int flags =
          (flow == null ? 0 : HAS_FLOW)
              | (key == null ? 0 : HAS_KEY)
              | (keyIsFlow ? KEY_IS_FLOW : 0)
              | (value == null ? 0 : HAS_VALUE)
              | (hasHeaders ? HAS_HEADERS : 0)
              | (terms.enqueueMs == record.timestamp() ? 0 : HAS_ENQUEUE_TIME)
              | (terms.expiresNanos == NEVER ? 0 : HAS_EXPIRY)
              | (terms.cost == 1 ? 0 : HAS_COST)
              | (terms.markable ? MARKABLE : 0);
      return new Content(
          flags,
          record.timestamp(),
          key == null || keyIsFlow ? null : key.clone(),
          value == null ? null : value.clone(),
          hasHeaders ? new Record<>(null, null, 0, record.headers()).headers() : null);
    }

    boolean has(int flag) {
      return (flags & flag) != 0;
    }

    byte[] key(byte[] storeKey) {
      return has(KEY_IS_FLOW) ? flowOf(storeKey).get() : key;
    }

    /** Bytes once encoded. */
    long size() {
      long size = PREFIX_BYTES + CHECKSUM_BYTES;
      size +=
          (long) Long.BYTES * Integer.bitCount(flags & (HAS_ENQUEUE_TIME | HAS_EXPIRY | HAS_COST));
      size += key == null ? 0 : sizeOf(key);
      size += value == null ? 0 : sizeOf(value);
      if (headers != null) {
        size += Integer.BYTES;
        for (Header header : headers) {
          size += sizeOf(header.key().getBytes(StandardCharsets.UTF_8)) + sizeOf(header.value());
        }
      }
      return size;
    }
  }

  /** What the bytes say, checked. */
  private record Stored(Terms terms, Content content) {

    static Stored of(String store, Bytes storeKey, byte[] stored) {
      try {
        return parse(storeKey.get(), stored);
      } catch (IllegalArgumentException | BufferUnderflowException e) {
        String found =
            e.getMessage() == null ? stored.length + " bytes, cut short" : e.getMessage();
        throw new SerializationException(
            "store "
                + store
                + ", key "
                + HexFormat.of().formatHex(storeKey.get())
                + ": must be a queued record of format "
                + VERSION
                + ", was "
                + found,
            e);
      }
    }

    private static Stored parse(byte[] storeKey, byte[] stored) {
      if (storeKey.length < Long.BYTES || stored.length < PREFIX_BYTES + CHECKSUM_BYTES) {
        throw new BufferUnderflowException();
      }
      ByteBuffer in = ByteBuffer.wrap(stored, 0, stored.length - CHECKSUM_BYTES);
      byte version = in.get();
      if (version != VERSION) {
        throw new IllegalArgumentException("of format " + version);
      }
      int bodyLength = stored.length - CHECKSUM_BYTES;
      ByteBuffer body = ByteBuffer.wrap(stored, 0, bodyLength);
      if (ByteBuffer.wrap(stored).getInt(bodyLength) != checksum(storeKey, body)) {
        throw new IllegalArgumentException(stored.length + " bytes with a wrong checksum");
      }
      int flags = in.getShort();
      if ((flags & ~ALL_FLAGS) != 0) {
        throw new IllegalArgumentException("with unknown flags " + Integer.toHexString(flags));
      }
      boolean hasFlow = (flags & HAS_FLOW) != 0;
      boolean keyIsFlow = (flags & KEY_IS_FLOW) != 0;
      if ((keyIsFlow && (!hasFlow || (flags & HAS_KEY) == 0))
          || (!hasFlow && storeKey.length > Long.BYTES)) {
        throw new IllegalArgumentException(
            "with contradicting flags " + Integer.toHexString(flags));
      }
      long timestampMs = between("timestamp", 0, Long.MAX_VALUE, in.getLong());
      long enqueueMs = (flags & HAS_ENQUEUE_TIME) == 0 ? timestampMs : in.getLong();
      between("enqueue time", 0, Long.MAX_VALUE / NANOS_PER_MS, enqueueMs);
      long expiresNanos = (flags & HAS_EXPIRY) == 0 ? NEVER : in.getLong();
      long cost = (flags & HAS_COST) == 0 ? 1 : in.getLong();
      between("cost", 1, Long.MAX_VALUE, cost);
      byte[] key = null;
      if ((flags & HAS_KEY) != 0 && !keyIsFlow) {
        key = getBytes(in, in.getInt());
      }
      byte[] value = (flags & HAS_VALUE) == 0 ? null : getBytes(in, in.getInt());
      boolean hasHeaders = (flags & HAS_HEADERS) != 0;
      int headerCount = hasHeaders ? in.getInt() : 0;
      Headers headers = hasHeaders ? new Record<>(null, null, 0).headers() : null;
      for (int i = 0; i < headerCount; i++) {
        String name = new String(getBytes(in, in.getInt()), StandardCharsets.UTF_8);
        int length = in.getInt();
        headers.add(name, length == NULL_LENGTH ? null : getBytes(in, length));
      }
      if (in.hasRemaining()) {
        throw new IllegalArgumentException(in.remaining() + " bytes too long");
      }
      Terms terms = new Terms(enqueueMs, cost, (flags & MARKABLE) != 0, expiresNanos);
      return new Stored(terms, new Content(flags, timestampMs, key, value, headers));
    }

    private static long between(String name, long least, long most, long number) {
      if (number < least || number > most) {
        throw new IllegalArgumentException("with a " + name + " of " + number);
      }
      return number;
    }

    /** Checks the length before it allocates. */
    private static byte[] getBytes(ByteBuffer in, int length) {
      if (length < 0 || length > in.remaining()) {
        throw new IllegalArgumentException(
            "with a length of " + length + " where " + in.remaining() + " bytes are left");
      }
      byte[] bytes = new byte[length];
      in.get(bytes);
      return bytes;
    }
  }
}
