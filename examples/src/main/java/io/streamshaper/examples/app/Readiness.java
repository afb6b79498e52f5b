package io.streamshaper.examples.app;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * Whether tasks run and their state is restored. Kafka Streams says that it runs while it restores
 * a task whose state was corrupt, too. Thread-safe.
 */
final class Readiness implements StateRestoreListener {
  private final Set<TopicPartition> restoring = ConcurrentHashMap.newKeySet();

  /** An application that has no partition is ready, too: to take over. */
  boolean isReady(KafkaStreams.State state) {
    return state == KafkaStreams.State.RUNNING && restoring.isEmpty();
  }

  @Override
  public void onRestoreStart(TopicPartition changelog, String store, long from, long to) {
    restoring.add(changelog);
  }

  @Override
  public void onBatchRestored(TopicPartition changelog, String store, long to, long records) {}

  @Override
  public void onRestoreEnd(TopicPartition changelog, String store, long records) {
    restoring.remove(changelog);
  }

  @Override
  public void onRestoreSuspended(TopicPartition changelog, String store, long records) {
    restoring.remove(changelog);
  }
}
