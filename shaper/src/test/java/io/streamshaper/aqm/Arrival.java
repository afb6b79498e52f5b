package io.streamshaper.aqm;

/** A packet to enqueue, relative to the present. */
record Arrival(
    String key, long ageNanos, long cost, long bytes, boolean markable, long lifeNanos) {}
