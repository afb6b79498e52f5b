package io.streamshaper.examples;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;

/** The queued records in a shaper's changelog, found without the shaper: an audit trusts no one. */
final class QueueChangelog {
  private static final int SEQUENCE_BYTES = Long.BYTES;
  private static final byte BLOCK_VERSION = 2;
  private static final byte REMAINDER_PREFIX = (byte) 0x80;

  /** Takes a queued record. */
  interface Visitor {
    /**
     * Called for each.
     *
     * @param entry the changelog's, which may be of many records
     * @param flow its serialised flow
     * @param stored what is stored of it, its checksum at the end
     */
    void queued(ConsumerRecord<byte[], byte[]> entry, byte[] flow, byte[] stored);
  }

  /** As if compacted. */
  private final TreeMap<Bytes, ConsumerRecord<byte[], byte[]>> entries = new TreeMap<>();

  /** Takes the next record of the changelog. */
  void add(ConsumerRecord<byte[], byte[]> record) {
    if (record.value() == null) {
      entries.remove(Bytes.wrap(record.key()));
    } else {
      entries.put(Bytes.wrap(record.key()), record);
    }
  }

  long count() {
    long[] count = {0};
    each((entry, flow, stored) -> count[0]++);
    return count[0];
  }

  /** Oldest first. */
  void each(Visitor visitor) {
    for (ConsumerRecord<byte[], byte[]> entry : entries.values()) {
      byte[] key = entry.key();
      if (key.length < SEQUENCE_BYTES || key[0] == REMAINDER_PREFIX) {
        continue; // where the queue begins, or what remains of a block
      }
      if (entry.value()[0] == BLOCK_VERSION) {
        eachOfBlock(entry, remainderOf(key), visitor);
      } else {
        visitor.queued(entry, flowOf(key), entry.value());
      }
    }
  }

  private static void eachOfBlock(
      ConsumerRecord<byte[], byte[]> entry, long remainder, Visitor visitor) {
    ByteBuffer in = ByteBuffer.wrap(entry.value()).position(1);
    for (int left = in.get(); left > 0; left--) {
      int index = in.get();
      byte[] key = next(in);
      byte[] stored = next(in);
      if ((remainder >>> index & 1) == 1) {
        visitor.queued(entry, flowOf(key), stored);
      }
    }
  }

  private long remainderOf(byte[] blockKey) {
    byte[] key =
        ByteBuffer.allocate(1 + SEQUENCE_BYTES).put(REMAINDER_PREFIX).put(blockKey).array();
    ConsumerRecord<byte[], byte[]> remainder = entries.get(Bytes.wrap(key));
    return remainder == null ? -1 : ByteBuffer.wrap(remainder.value()).getLong(1);
  }

  private static byte[] flowOf(byte[] key) {
    return Arrays.copyOfRange(key, SEQUENCE_BYTES, key.length);
  }

  private static byte[] next(ByteBuffer in) {
    byte[] bytes = new byte[in.getShort()];
    in.get(bytes);
    return bytes;
  }
}
