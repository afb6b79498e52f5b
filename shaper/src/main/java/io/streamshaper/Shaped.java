package io.streamshaper;

import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;

/**
 * The two streams that come out of a shaper. Every record that went in comes out of exactly one of
 * them, or is still queued. Not thread-safe: belongs to who builds the topology.
 */
public final class Shaped<K, V> {
  private final Shaper<K, V> shaper;
  private final KStream<K, V> both;
  private final KStream<K, V> forwarded;
  private KStream<K, V> dropped;

  Shaped(Shaper<K, V> shaper, KStream<K, V> both) {
    this.shaper = shaper;
    this.both = both;
    forwarded = part(shaper.forwardedName());
  }

  /** The records as they came. */
  public KStream<K, V> forwarded() {
    return forwarded;
  }

  /**
   * The records that were dropped, with the reason and more in {@code shaper.*} headers, and the
   * time of the drop as their timestamp. Unless this is asked for before the topology is built,
   * drops are counted and go nowhere.
   */
  public KStream<K, V> dropped() {
    if (dropped == null) {
      dropped = part(shaper.droppedName());
      shaper.emitDropped();
    }
    return dropped;
  }

  private KStream<K, V> part(String name) {
    return both.filter((key, value) -> true, Named.as(name));
  }
}
