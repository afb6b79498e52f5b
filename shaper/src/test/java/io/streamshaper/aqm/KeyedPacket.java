package io.streamshaper.aqm;

/** A packet that knows its flow and its place in the input. */
final class KeyedPacket extends Packet {
  final String key;
  final long id;

  KeyedPacket(
      String key,
      long id,
      long timestampNanos,
      long cost,
      long bytes,
      boolean markable,
      long expiresNanos) {
    super(timestampNanos, cost, bytes, markable, expiresNanos);
    this.key = key;
    this.id = id;
  }

  /** Of cost 1, which never expires and can't be marked. */
  static KeyedPacket of(String key, long id, long timestampNanos) {
    return new KeyedPacket(key, id, timestampNanos, 1, 1, false, NEVER);
  }

  @Override
  public String toString() {
    return key + id;
  }
}
