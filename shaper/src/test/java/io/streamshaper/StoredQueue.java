package io.streamshaper;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.Record;

/** What the entries of a store, or of its compacted changelog, say is queued, oldest first. */
record StoredQueue(List<Long> sequences, List<Record<byte[], byte[]>> records) {

  static StoredQueue of(Map<Bytes, byte[]> entries) {
    TreeMap<Bytes, byte[]> sorted = new TreeMap<>(entries);
    List<Long> sequences = new ArrayList<>();
    List<Record<byte[], byte[]>> records = new ArrayList<>();
    ByteArrayDeserializer raw = new ByteArrayDeserializer();
    sorted.forEach(
        (key, value) -> {
          if (isBlock(key)) {
            Bytes remainderKey = Block.remainderKey(ByteBuffer.wrap(key.get()).getLong());
            byte[] remainder = sorted.get(remainderKey);
            List<QueuedRecord> queue = new ArrayList<>();
            Long remaining =
                remainder == null ? null : Block.readRemainder("s", remainderKey, remainder);
            Block block = Block.read("s", key, value, remaining, queue::add);
            for (QueuedRecord queued : queue) {
              sequences.add(queued.sequence());
              byte[] bytes = block.valueOf("s", queued);
              records.add(queued.record("s", bytes, "topic", new Scratch(), raw, raw));
            }
          }
        });
    return new StoredQueue(sequences, records);
  }

  /** Not the position, and not what remains of a block. */
  static boolean isBlock(Bytes key) {
    return key.get().length >= Long.BYTES && key.get()[0] >= 0;
  }
}
