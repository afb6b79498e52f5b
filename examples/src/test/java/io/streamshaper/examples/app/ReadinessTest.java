package io.streamshaper.examples.app;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams.State;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ReadinessTest {
  private static final String STORE = "shaper-queue";
  private static final TopicPartition FIRST = new TopicPartition("changelog", 0);
  private static final TopicPartition SECOND = new TopicPartition("changelog", 1);

  private final Readiness readiness = new Readiness();

  @ParameterizedTest
  @EnumSource
  void isThereInNoStateButRunning(State state) {
    assertThat(readiness.isReady(state)).isEqualTo(state == State.RUNNING);
  }

  @Test
  void isHeldBackUntilTheLastChangelogHasBeenRead() {
    readiness.onRestoreStart(FIRST, STORE, 0, 10);
    readiness.onRestoreStart(SECOND, STORE, 0, 10);
    assertThat(readiness.isReady(State.RUNNING)).isFalse();
    readiness.onBatchRestored(FIRST, STORE, 10, 10);
    assertThat(readiness.isReady(State.RUNNING)).isFalse();
    readiness.onRestoreEnd(FIRST, STORE, 10);
    assertThat(readiness.isReady(State.RUNNING)).isFalse();
    readiness.onRestoreEnd(SECOND, STORE, 10);
    assertThat(readiness.isReady(State.RUNNING)).isTrue();
  }

  @Test
  void isNotHeldBackByATaskThatMovedAwayWhileItWasRestored() {
    readiness.onRestoreStart(FIRST, STORE, 0, 10);
    readiness.onRestoreSuspended(FIRST, STORE, 5);
    assertThat(readiness.isReady(State.RUNNING)).isTrue();
  }
}
