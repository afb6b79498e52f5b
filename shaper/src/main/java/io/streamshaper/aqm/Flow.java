package io.streamshaper.aqm;

/** The packets of one key: a FIFO, its place in the scheduler and its CoDel state. */
final class Flow<K, P extends Packet> {
  K key;
  int hash;
  int weight;

  private P head;
  private P tail;

  /** Sum of the cost of the queued packets. */
  long backlog;

  private long packets;
  private long bytes;

  /** Deficit round robin (RFC 8290, section 4.2). */
  long deficit;

  /** When the flow was last listed, as an ordinal: what breaks ties between equally fat flows. */
  long activation;

  FlowList<K, P> list;
  Flow<K, P> prev;
  Flow<K, P> next;

  /** The next in the flow table's chain. */
  Flow<K, P> chained;

  int heapIndex = FlowHeap.ABSENT;

  /** The backlog that the place in the heap goes by. */
  long rank;

  /** Whether the backlog is less than the rank. */
  boolean outdated;

  /** CoDel (RFC 8289, section 5). It outlives the listing. */
  long count;

  long lastCount;
  boolean dropping;

  /** A boolean beside the time, since 0 is an ordinary time. */
  boolean armed;

  long alarmNanos;
  boolean hasDropNext;
  long dropNextNanos;

  /** A drop was made, and whether it moves {@link #dropNextNanos} depends on the next packet. */
  boolean dropNextPending;

  /** What an empty flow remembers of an earlier key goes. */
  void begin(K newKey, int newHash, int newWeight) {
    key = newKey;
    hash = newHash;
    weight = newWeight;
    count = 0;
    lastCount = 0;
    hasDropNext = false;
  }

  void offer(P packet) {
    if (tail == null) {
      head = packet;
    } else {
      tail.next = packet;
    }
    tail = packet;
    backlog += packet.cost();
    packets++;
    bytes += packet.bytes();
  }

  /** The oldest packet, taken out, or null. */
  @SuppressWarnings("unchecked") // only P is ever offered
  P poll() {
    P packet = head;
    if (packet != null) {
      head = (P) packet.next;
      if (head == null) {
        tail = null;
      }
      packet.next = null;
      backlog -= packet.cost();
      packets--;
      bytes -= packet.bytes();
    }
    return packet;
  }

  P peek() {
    return head;
  }

  FlowState<K> state() {
    long oldestNanos = head == null ? 0 : head.timestampNanos();
    return new FlowState<>(key, packets, backlog, bytes, oldestNanos, dropping);
  }

  boolean isEmpty() {
    return head == null;
  }
}
