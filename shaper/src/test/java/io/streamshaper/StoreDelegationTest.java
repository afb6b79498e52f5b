package io.streamshaper;

import static io.streamshaper.TestTopology.START_MS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What Kafka Streams is told of the two stores, and what they pass on. */
class StoreDelegationTest {
  private static final TopicPartition PARTITION = new TopicPartition("changelog", 0);

  private final List<String> calls = new ArrayList<>();

  @Test
  @SuppressWarnings("deprecation") // what every version has
  void theQueueIsWhatItsInnerStoreIs() {
    Position position = Position.emptyPosition().withComponent("t", 0, 5);
    for (boolean is : new boolean[] {true, false}) {
      FlowQueueStore store = storeOn(Map.of("persistent", is, "isOpen", is));
      assertThat(store.persistent()).isEqualTo(is);
      assertThat(store.isOpen()).isEqualTo(is);
    }
    FlowQueueStore store = storeOn(Map.of("getPosition", position));
    assertThat(store.getPosition()).isEqualTo(position);
    calls.clear();
    store.flush();
    store.close();
    assertThat(calls).containsExactly("flush", "close");
  }

  @Test
  @Tag("kafka-4.4")
  @SuppressWarnings("deprecation") // Kafka Streams asks it
  void itsOffsetsAreItsInnerStores() {
    for (boolean is : new boolean[] {true, false}) {
      FlowQueueStore store = storeOn(Map.of("managesOffsets", is, "committedOffset", 7L));
      assertThat(store.managesOffsets()).isEqualTo(is);
      assertThat(store.committedOffset(PARTITION)).isEqualTo(7);
      calls.clear();
      store.commit(Map.of());
      assertThat(calls).containsExactly("commit");
    }
  }

  @ParameterizedTest
  @EnumSource
  void theStoreIsTheOneThatWasAskedFor(ShaperOptions.Store kind) {
    FlowQueueStore store = FlowQueueStore.builder("s", kind, Map.of()).build();
    assertThat(store.persistent()).isEqualTo(kind == ShaperOptions.Store.ROCKSDB);
  }

  /** Bytes that the store has on disk are not held in memory as well. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatIsRestoredIsHeldInMemoryUnlessTheStoreIsOnDisk(boolean onDisk) {
    FakeTask task = new FakeTask((record, child) -> {});
    task.start(TestTopology.shaper(ShaperOptions.builder().rate(1).burst(1)));
    for (int i = 0; i < 3; i++) {
      task.pipe("k", "v" + i, START_MS);
    }
    task.commit();
    List<QueuedRecord> restored = new ArrayList<>();
    FlowQueueStore store = new FlowQueueStore(task.innerStore(), onDisk, true);
    store.open(task.hookStore(), true, 100, START_MS, 0, restored::add);
    assertThat(restored)
        .hasSize(2)
        .allSatisfy(queued -> assertThat(queued.block().value() == null).isEqualTo(onDisk))
        .allSatisfy(queued -> assertThat(store.valueOf(queued)).isNotNull());
  }

  @Test
  void whicheverWayTheMarkerComesTheHookFires() {
    CommitHook hook = new CommitHook("hook");
    int[] fired = new int[1];
    CommitHook.bind(hook, () -> fired[0]++);
    hook.put(Bytes.wrap(new byte[0]), new byte[0]);
    assertThat(hook.putIfAbsent(Bytes.wrap(new byte[0]), new byte[0])).isNull();
    hook.putAll(List.of(KeyValue.pair(Bytes.wrap(new byte[0]), new byte[0])));
    assertThat(fired[0]).isEqualTo(3);
  }

  @Test
  void aHookThatIsNotBoundTakesTheMarkerAndDoesNothing() {
    CommitHook hook = new CommitHook("hook");
    assertThatCode(() -> hook.put(Bytes.wrap(new byte[0]), new byte[0])).doesNotThrowAnyException();
  }

  @Test
  void aStoreUnderWhichThereIsNoHookIsRefused() {
    QueryResult<Boolean> failure =
        QueryResult.forFailure(FailureReason.UNKNOWN_QUERY_TYPE, "never heard of it");
    assertThatThrownBy(() -> CommitHook.bind(innerOn(Map.of("query", failure)), () -> {}))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("commit hook not reached: never heard of it");
  }

  @Test
  void theHookIsOpenFromItsRegistrationUntilItIsClosed() {
    CommitHook hook = new CommitHook("hook");
    assertThat(hook.isOpen()).isFalse();
    hook.init(answering(StateStoreContext.class, Map.of()), hook);
    assertThat(calls).containsExactly("register");
    assertThat(hook.isOpen()).isTrue();
    hook.close();
    assertThat(hook.isOpen()).isFalse();
  }

  @Test
  void theMetricsOfTheHookAreUnderATagOfItsOwn() {
    String tag = "shaper-commit-hook-state-id";
    try (TestTopology test = TestTopology.of(TestTopology.patient(1))) {
      assertThat(test.driver().metrics().keySet())
          .filteredOn(metric -> metric.tags().containsKey(tag))
          .isNotEmpty()
          .allSatisfy(metric -> assertThat(metric.tags()).containsEntry(tag, "s-commit-hook"));
    }
  }

  @Test
  void theHookHoldsNothingAndSaysSo() {
    CommitHook hook = new CommitHook("hook");
    assertThat(hook.persistent()).isFalse();
    assertThat(hook.approximateNumEntries()).isZero();
    assertThat(hook.getPosition()).isEqualTo(Position.emptyPosition());
    Bytes key = Bytes.wrap(new byte[0]);
    assertThat(hook.get(key)).isNull();
    assertThat(hook.delete(key)).isNull();
    assertThatThrownBy(hook::all).hasMessage("hook holds nothing");
    assertThatThrownBy(() -> hook.range(key, key)).hasMessage("hook holds nothing");
    assertThat(
            hook.query(
                    RangeQuery.<Bytes, byte[]>withNoBounds(),
                    PositionBound.unbounded(),
                    new QueryConfig(false))
                .isFailure())
        .isTrue();
  }

  /** On an inner store that answers as told, and null to all else. */
  private FlowQueueStore storeOn(Map<String, Object> answers) {
    return new FlowQueueStore(innerOn(answers), false, true);
  }

  @SuppressWarnings("unchecked") // a proxy knows no type arguments
  private KeyValueStore<Bytes, byte[]> innerOn(Map<String, Object> answers) {
    return answering(KeyValueStore.class, answers);
  }

  private <T> T answering(Class<T> type, Map<String, Object> answers) {
    return type.cast(
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) -> {
              calls.add(method.getName());
              return answers.get(method.getName());
            }));
  }
}
