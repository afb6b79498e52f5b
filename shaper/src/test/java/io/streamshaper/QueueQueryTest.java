package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.junit.jupiter.api.Test;

/** What a task says about its queue. */
class QueueQueryTest {
  private static final QueryConfig PLAIN = new QueryConfig(false);

  @Test
  void anEmptyQueueSaysSo() {
    try (TestTopology topology = TestTopology.of(TestTopology.patient(1))) {
      assertThat(ask(topology, QueueQuery.fattest(5)))
          .isEqualTo(new QueueState(0, 0, 0, 0, List.of()));
    }
  }

  @Test
  void totalsCountEveryFlowAndTheFattestComeFirst() {
    try (TestTopology topology = TestTopology.of(TestTopology.patient(1))) {
      topology.pipe("first", "takes the only token");
      topology.pipeMany("b", 0, 20).pipeMany("c", 0, 5).pipeMany("a", 0, 10);

      QueueState state = ask(topology, QueueQuery.fattest(2));
      assertThat(state.records()).isEqualTo(35);
      assertThat(state.busyFlows()).isBetween(3, 4);
      assertThat(state.droppingFlows()).isZero();
      assertThat(state.flows())
          .extracting(QueueState.FlowQueue::flow)
          .containsExactly(flow("b"), flow("a"));
      assertThat(state.flows()).extracting(QueueState.FlowQueue::records).containsExactly(20L, 10L);

      QueueState all = ask(topology, QueueQuery.fattest(1000));
      assertThat(all.flows().stream().mapToLong(QueueState.FlowQueue::records).sum()).isEqualTo(35);
      assertThat(all.flows().stream().mapToLong(QueueState.FlowQueue::bytes).sum())
          .isEqualTo(all.bytes());
      topology.checkLaw();
    }
  }

  @Test
  void oneFlowIsListedWithTheAgeOfItsOldestRecord() {
    try (TestTopology topology = TestTopology.of(TestTopology.patient(1))) {
      topology.pipe("first", "takes the only token");
      topology.pipeMany("a", 0, 3).pipeMany("b", 0, 9);
      topology.step(500);
      topology.pipe("a", "young");

      QueueState state = ask(topology, QueueQuery.flow(TestTopology.bytes("a")));
      assertThat(state.records()).isEqualTo(13);
      assertThat(state.flows()).hasSize(1);
      QueueState.FlowQueue flow = state.flows().get(0);
      assertThat(flow.flow()).isEqualTo(flow("a"));
      assertThat(flow.records()).isEqualTo(4);
      assertThat(flow.oldestAge()).isEqualTo(Duration.ofMillis(500 + TestTopology.TICK_MS));
      assertThat(flow.dropping()).isFalse();
    }
  }

  @Test
  void aFlowThatIsAlsoAmongTheFattestIsListedOnce() {
    try (TestTopology topology = TestTopology.of(TestTopology.patient(1))) {
      topology.pipe("first", "takes the only token");
      topology.pipeMany("a", 0, 3).pipeMany("b", 0, 9);
      assertThat(ask(topology, new QueueQuery(1, flow("b"))).flows()).hasSize(1);
      assertThat(ask(topology, new QueueQuery(1, flow("a"))).flows()).hasSize(2);
    }
  }

  @Test
  void aFlowThatNobodyKnowsIsNotListed() {
    try (TestTopology topology = TestTopology.of(TestTopology.patient(1))) {
      assertThat(ask(topology, QueueQuery.flow(TestTopology.bytes("nobody"))).flows()).isEmpty();
    }
  }

  @Test
  void theFlowOfRecordsWithoutAKeyIsListedAsNull() {
    try (TestTopology topology = TestTopology.of(TestTopology.patient(1))) {
      topology.pipe("first", "takes the only token");
      topology.pipe(null, TestTopology.bytes("x"), TestTopology.headers(), topology.nowMs());
      assertThat(ask(topology, QueueQuery.fattest(1)).flows())
          .singleElement()
          .satisfies(flow -> assertThat(flow.flow()).isNull());
    }
  }

  @Test
  void aFlowThatIsBeingCutSaysSo() {
    ShaperOptions.Builder strict =
        ShaperOptions.builder()
            .rate(100)
            .target(Duration.ofMillis(20))
            .interval(Duration.ofMillis(100));
    try (TestTopology topology = TestTopology.of(strict)) {
      for (int i = 0; i < 100; i++) {
        topology.pipeMany("hot", 10 * i, 10 * i + 10).advance(10);
      }
      QueueState state = ask(topology, QueueQuery.fattest(1));
      assertThat(state.droppingFlows()).isEqualTo(1);
      assertThat(state.flows()).singleElement().matches(QueueState.FlowQueue::dropping);
    }
  }

  @Test
  void aTaskThatHasEndedIsNotActive() {
    StateStore store;
    try (TestTopology topology = TestTopology.of(TestTopology.patient(1))) {
      store = store(topology);
    }
    QueryResult<QueueState> result = query(store, QueueQuery.fattest(1));
    assertThat(result.getFailureReason()).isEqualTo(FailureReason.NOT_ACTIVE);
  }

  @Test
  void otherQueriesGetTheUsualAnswer() {
    try (TestTopology topology = TestTopology.of(TestTopology.patient(1))) {
      assertThat(query(store(topology), new Stranger()).getFailureReason())
          .isEqualTo(FailureReason.UNKNOWN_QUERY_TYPE);
      assertThat(query(store(topology), KeyQuery.withKey(flow("a"))).isSuccess()).isTrue();
    }
  }

  @Test
  void aListLongerThanAThousandIsRefused() {
    assertThatThrownBy(() -> QueueQuery.fattest(1001))
        .hasMessage("fattest must be between 0 and 1000, was 1001");
    assertThatThrownBy(() -> QueueQuery.fattest(-1))
        .hasMessage("fattest must be between 0 and 1000, was -1");
  }

  private record Stranger() implements Query<String> {}

  private static QueueState ask(TestTopology topology, QueueQuery query) {
    var callers = Executors.newSingleThreadExecutor();
    try {
      CompletableFuture<QueryResult<QueueState>> asked =
          CompletableFuture.supplyAsync(() -> query(store(topology), query), callers);
      FlowQueueStore store = (FlowQueueStore) store(topology);
      while (store.inquiries().waiting() == 0) {
        assertThat(asked).isNotCompletedExceptionally();
        Thread.onSpinWait();
      }
      topology.step(TestTopology.TICK_MS);
      return asked.join().getResult();
    } finally {
      callers.shutdown();
    }
  }

  private static <R> QueryResult<R> query(StateStore store, Query<R> query) {
    return store.query(query, PositionBound.unbounded(), PLAIN);
  }

  private static StateStore store(TestTopology topology) {
    return topology.driver().getStateStore(TestTopology.NAME + "-queue");
  }

  private static Bytes flow(String key) {
    return Bytes.wrap(TestTopology.bytes(key));
  }
}
