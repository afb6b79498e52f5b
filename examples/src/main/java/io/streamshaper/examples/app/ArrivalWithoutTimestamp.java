package io.streamshaper.examples.app;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.streams.processor.TimestampExtractor;

/** The record's timestamp; the present if it has none, at which Kafka Streams would stop. */
public final class ArrivalWithoutTimestamp implements TimestampExtractor {
  @Override
  public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
    return record.timestamp() < 0 ? System.currentTimeMillis() : record.timestamp();
  }
}
