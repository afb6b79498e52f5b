package io.streamshaper.examples;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaClientSupplier;

/**
 * Clients of an application that dies at the worst moment of its first commit with output: when all
 * that it wrote to changelogs has been acknowledged, and none of what it wrote to other topics.
 */
public final class HaltingClients implements KafkaClientSupplier {
  /** With which the JVM ends. */
  static final int STATUS = 86;

  @Override
  public Admin getAdmin(Map<String, Object> config) {
    return Admin.create(config);
  }

  @Override
  public Producer<byte[], byte[]> getProducer(Map<String, Object> config) {
    return new HaltingProducer(config);
  }

  @Override
  public Consumer<byte[], byte[]> getConsumer(Map<String, Object> config) {
    return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  @Override
  public Consumer<byte[], byte[]> getRestoreConsumer(Map<String, Object> config) {
    return getConsumer(config);
  }

  @Override
  public Consumer<byte[], byte[]> getGlobalConsumer(Map<String, Object> config) {
    return getConsumer(config);
  }

  private static final class HaltingProducer extends KafkaProducer<byte[], byte[]> {
    private boolean outputIsDelayed;

    HaltingProducer(Map<String, Object> config) {
      super(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    @Override
    public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record, Callback callback) {
      if (record.topic().endsWith("-changelog")) {
        return super.send(record, callback);
      }
      outputIsDelayed = true;
      return new CompletableFuture<>();
    }

    /** Called at a commit. Returns when everything has been acknowledged. */
    @Override
    public void flush() {
      super.flush();
      if (outputIsDelayed) {
        Runtime.getRuntime().halt(STATUS);
      }
    }
  }
}
