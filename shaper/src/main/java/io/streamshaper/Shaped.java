package io.streamshaper;

import org.apache.kafka.streams.kstream.KStream;

/**
 * The two streams that come out of a shaper. Every record that went in comes out of exactly one of
 * them, or is still queued.
 *
 * @param forwarded the records as they came
 * @param dropped the records that were dropped, with the reason and more in {@code shaper.*}
 *     headers, and the time of the drop as their timestamp
 */
public record Shaped<K, V>(KStream<K, V> forwarded, KStream<K, V> dropped) {}
