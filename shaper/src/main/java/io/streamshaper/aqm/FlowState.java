package io.streamshaper.aqm;

/**
 * A flow as it was at an instant.
 *
 * @param packets queued
 * @param cost of the queued packets
 * @param bytes of the queued packets
 * @param oldestNanos enqueue time of the packet that is next; meaningless if none is queued
 * @param dropping whether its delay is standing and it is being cut
 */
public record FlowState<K>(
    K key, long packets, long cost, long bytes, long oldestNanos, boolean dropping) {}
