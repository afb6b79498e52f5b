package io.streamshaper;

import io.streamshaper.aqm.Codel;
import io.streamshaper.aqm.FqCodel;
import io.streamshaper.aqm.Packet;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.openjdk.jol.info.ClassLayout;
import org.openjdk.jol.info.GraphLayout;

/** What a queued record and a flow keep in memory, beyond the bytes that are the user's own. */
public final class Footprint {
  private static final int FLOWS = 1_000;
  private static final int RECORDS = 1_000_000;
  private static final int COMMIT = 1_000;
  private static final byte[] VALUE = new byte[100];

  private Footprint() {}

  /** Takes no arguments. */
  public static void main(String[] arguments) {
    KeyValueStore<Bytes, byte[]> store = Stores.inMemoryKeyValueStore("s").get();
    FqCodel<Bytes, QueuedRecord> scheduler = scheduler();
    fill(store, scheduler, FLOWS);
    long before = GraphLayout.parseInstance(store, scheduler).totalSize();
    long own = fill(store, scheduler, RECORDS);
    GraphLayout layout = GraphLayout.parseInstance(store, scheduler);
    System.out.println(ClassLayout.parseClass(QueuedRecord.class).toPrintable());
    System.out.println(layout.toFootprint());
    System.out.printf(
        "a queued record: %.1f bytes beyond its own%n",
        (layout.totalSize() - before - own) / (double) RECORDS);
    System.out.printf("a flow: %.1f bytes beyond its key%n", flowBytes());
  }

  /** Queues and saves records; returns the bytes that are the user's. */
  private static long fill(
      KeyValueStore<Bytes, byte[]> store, FqCodel<Bytes, QueuedRecord> scheduler, int records) {
    long own = 0;
    QueuedRecord firstUnsaved = null;
    QueuedRecord newest = null;
    for (int i = 0; i < records; i++) {
      byte[] key = String.format("customer-%03d", i % FLOWS).getBytes(StandardCharsets.UTF_8);
      long sequence = (1L << 60) + scheduler.packets();
      QueuedRecord queued =
          QueuedRecord.resting(
              Bytes.wrap(key),
              sequence,
              new QueuedRecord.Terms(0, 1, false, Packet.NEVER),
              new Record<>(null, null, 0),
              key,
              VALUE);
      scheduler.append(Bytes.wrap(key), queued);
      own += key.length + VALUE.length;
      queued.older = newest;
      if (firstUnsaved == null) {
        firstUnsaved = queued;
      } else {
        newest.newer = queued;
      }
      newest = queued;
      if (i % COMMIT == COMMIT - 1) {
        save(store, firstUnsaved);
        firstUnsaved = null;
      }
    }
    return own;
  }

  private static void save(KeyValueStore<Bytes, byte[]> store, QueuedRecord firstUnsaved) {
    QueuedRecord next = firstUnsaved;
    while (next != null) {
      Block block = Block.of(next, Long.MAX_VALUE);
      store.put(block.storeKey(), block.value());
      while (next != null && next.block() == block) {
        next = next.newer;
      }
    }
  }

  private static double flowBytes() {
    FqCodel<Integer, Packet> scheduler = scheduler();
    Integer[] keys = new Integer[RECORDS];
    for (int i = 0; i < RECORDS; i++) {
      keys[i] = i;
      scheduler.append(keys[i], new Packet(0, 1, 0, false, Packet.NEVER));
    }
    while (!scheduler.isEmpty()) {
      scheduler.dequeue(0, Long.MAX_VALUE);
    }
    long keyBytes = GraphLayout.parseInstance((Object) keys[RECORDS - 1]).totalSize();
    return GraphLayout.parseInstance(scheduler).totalSize() / (double) RECORDS - keyBytes;
  }

  private static <K, P extends Packet> FqCodel<K, P> scheduler() {
    return new FqCodel<>(
        new Codel(1, 2, 1, -1, false, -1), 1, Long.MAX_VALUE, 0, 1, Object::hashCode, key -> 1, (packet, why) -> {});
  }
}
