package io.streamshaper.examples;

import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.streams.StreamsConfig;

/** Counts what an application's producer got acknowledged. Written by the producer's thread. */
final class Acknowledged {
  /** What the name of a changelog topic ends with. */
  static final String CHANGELOG = "-changelog";

  private static final String INSTANCE = "bench.acknowledged";

  private volatile long records;
  private volatile long changelogRecords;
  private volatile long lastNanos;

  /** Has an application's producer report here. */
  void register(Properties properties) {
    properties.put(StreamsConfig.producerPrefix("interceptor.classes"), Listener.class.getName());
    properties.put(StreamsConfig.producerPrefix(INSTANCE), this);
  }

  /** Forwarded and dropped. */
  long records() {
    return records;
  }

  long changelogRecords() {
    return changelogRecords;
  }

  /** When the last of {@link #records} was. */
  long lastNanos() {
    return lastNanos;
  }

  @SuppressWarnings("NonAtomicVolatileUpdate") // one thread
  private void count(String topic) {
    if (topic.endsWith(CHANGELOG)) {
      changelogRecords++;
    } else {
      lastNanos = System.nanoTime();
      records++;
    }
  }

  /** Kafka makes it, by its name. */
  public static final class Listener implements ProducerInterceptor<byte[], byte[]> {
    private Acknowledged acknowledged;

    @Override
    public void configure(Map<String, ?> config) {
      acknowledged = (Acknowledged) config.get(INSTANCE);
    }

    @Override
    public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
      return record;
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception failure) {
      if (failure == null) {
        acknowledged.count(metadata.topic());
      }
    }

    @Override
    public void close() {}
  }
}
