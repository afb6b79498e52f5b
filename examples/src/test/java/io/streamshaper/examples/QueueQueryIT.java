package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.streamshaper.QueueQuery;
import io.streamshaper.QueueState;
import io.streamshaper.ShaperOptions;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsNotStartedException;
import org.apache.kafka.streams.errors.StreamsStoppedException;
import org.apache.kafka.streams.errors.UnknownStateStoreException;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.StateQueryRequest;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Asking an application for its queues while it works, moves its tasks, or is not there. */
class QueueQueryIT {
  private static final String STORE = "shaper-queue";
  private static final Duration NEVER = Duration.ofDays(1);

  /** A task waits for at most so many questions, a question at most so long for its task. */
  private static final int MOST_WAITING = 64;

  private static final Duration PATIENCE = Duration.ofSeconds(2);

  private static Broker broker;
  private static Admin admin;

  private final ExecutorService callers = Executors.newCachedThreadPool();

  @BeforeAll
  static void startBroker() throws Exception {
    broker = Broker.start();
    admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()));
  }

  @AfterAll
  static void stopBroker() {
    admin.close();
    broker.close();
  }

  @AfterEach
  void endCallers() throws InterruptedException {
    callers.shutdownNow();
    assertThat(callers.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void anyThreadLearnsTotalsFlowsAndAgesWhileTheTasksWork() throws Exception {
    Step step = new Step(() -> {});
    try (Application application = application(step, 2, 0);
        Load load = new Load(broker.bootstrapServers(), application.in(), 2000, 50, 5)) {
      KafkaStreams streams = start(application, patient(50));
      long startNanos = System.nanoTime();
      load.run(Duration.ofSeconds(1));
      Patience.await("all is read", () -> application.committed() >= load.sent());

      long before = step.calls();
      List<QueueState> states = answers(streams, QueueQuery.fattest(5));
      long after = step.calls();
      assertThat(states).hasSize(2);
      assertThat(states.stream().mapToLong(QueueState::records).sum())
          .isBetween(load.sent() - after - 1, load.sent() - before);
      assertThat(states.stream().mapToLong(QueueState::bytes).sum())
          .isGreaterThan((load.sent() - after) * Load.VALUE_BYTES);
      assertThat(states.stream().mapToInt(QueueState::droppingFlows).sum()).isZero();
      assertThat(states).allSatisfy(state -> assertThat(state.flows()).hasSize(5));
      QueueState.FlowQueue fattest = flowOf(states, Load.HOT);
      assertThat(states).anySatisfy(state -> assertThat(state.flows().get(0)).isEqualTo(fattest));

      QueueState.FlowQueue hot = flowOf(answers(streams, flow(Load.HOT)), Load.HOT);
      assertThat(hot.records()).isBetween(1900L, fattest.records());
      assertThat(hot.dropping()).isFalse();
      assertThat(hot.oldestAge())
          .isBetween(
              fattest.oldestAge().dividedBy(2), Duration.ofNanos(System.nanoTime() - startNanos));
      assertThat(answers(streams, flow("nobody")))
          .allSatisfy(state -> assertThat(state.flows()).isEmpty());
      application.stop();
    }
  }

  @Test
  void aFlowThatIsBeingCutSaysSo() throws Exception {
    try (Application application = application(new Step(() -> {}), 1, 0);
        BackgroundLoad load =
            new BackgroundLoad(new Load(broker.bootstrapServers(), application.in(), 1000, 5, 1))) {
      KafkaStreams streams = start(application, ShaperOptions.builder().rate(200));
      Patience.await(
          "the hot key is being cut",
          () ->
              answers(streams, QueueQuery.fattest(1)).stream()
                  .anyMatch(
                      state -> state.droppingFlows() == 1 && state.flows().get(0).dropping()));
      load.stop();
      application.stop();
    }
  }

  @Test
  void ofEachTaskOnlyTheActiveOneAnswers() throws Exception {
    try (Application application = application(new Step(() -> {}), 2, 1);
        Application other = application.instance(config(1), new Step(() -> {})::processor);
        Load load = new Load(broker.bootstrapServers(), application.in(), 500, 20, 5)) {
      KafkaStreams one = start(application, patient(1));
      KafkaStreams two = start(other, patient(1));
      load.run(Duration.ofSeconds(1));
      Patience.await("all is read", () -> application.committed() >= load.sent());
      Patience.await(
          "each task has an active and a standby",
          () ->
              results(one, QueueQuery.fattest(1)).size()
                      + results(two, QueueQuery.fattest(1)).size()
                  == 4);

      Map<Integer, QueryResult<QueueState>> ofOne = results(one, QueueQuery.fattest(1));
      Map<Integer, QueryResult<QueueState>> ofTwo = results(two, QueueQuery.fattest(1));
      for (int partition = 0; partition < 2; partition++) {
        List<QueryResult<QueueState>> both = List.of(ofOne.get(partition), ofTwo.get(partition));
        assertThat(both).filteredOn(QueryResult::isSuccess).hasSize(1);
        assertThat(both)
            .filteredOn(QueryResult::isFailure)
            .singleElement()
            .extracting(QueryResult::getFailureReason)
            .isEqualTo(FailureReason.NOT_ACTIVE);
      }
      application.stop();
      other.stop();
    }
  }

  @Test
  void aTaskThatMovedIsAnsweredForByItsNewOwnerWithAllItHadQueued() throws Exception {
    try (Application application = application(new Step(() -> {}), 2, 0);
        Application other = application.instance(config(0), new Step(() -> {})::processor);
        Load load = new Load(broker.bootstrapServers(), application.in(), 500, 20, 5)) {
      KafkaStreams one = start(application, patient(1));
      load.run(Duration.ofSeconds(1));
      Patience.await("all is read", () -> application.committed() >= load.sent());
      Map<Integer, QueryResult<QueueState>> atFirst = results(one, QueueQuery.fattest(0));
      assertThat(atFirst.values()).hasSize(2).allMatch(QueryResult::isSuccess);

      KafkaStreams two = start(other, patient(1));
      Patience.await(
          "a task has moved",
          () ->
              results(two, QueueQuery.fattest(0)).values().stream()
                  .anyMatch(QueryResult::isSuccess));
      Map<Integer, QueryResult<QueueState>> moved = results(two, QueueQuery.fattest(0));
      assertThat(moved).hasSize(1);
      int partition = moved.keySet().iterator().next();
      long records = atFirst.get(partition).getResult().records();
      assertThat(moved.get(partition).getResult().records()).isBetween(records - 100, records);
      assertThat(results(one, QueueQuery.fattest(0)))
          .as("left with the old owner")
          .doesNotContainKey(partition);
      QueryResult<QueueState> asked =
          one.query(
                  StateQueryRequest.inStore(STORE)
                      .withQuery(QueueQuery.fattest(0))
                      .withPartitions(Set.of(partition)))
              .getPartitionResults()
              .get(partition);
      assertThat(asked.getFailureReason()).isEqualTo(FailureReason.NOT_PRESENT);
      application.stop();
      other.stop();
    }
  }

  @Test
  void whatIsNotThereFailsAsEverInKafkaStreams() throws Exception {
    try (Application application = application(new Step(() -> {}), 1, 0)) {
      AtomicReference<KafkaStreams> streams = new AtomicReference<>();
      application.start(
          patient(1).build(),
          notStarted -> {
            streams.set(notStarted);
            assertThatThrownBy(() -> results(notStarted, QueueQuery.fattest(1)))
                .isInstanceOf(StreamsNotStartedException.class);
          });
      assertThatThrownBy(
              () ->
                  streams
                      .get()
                      .query(
                          StateQueryRequest.inStore("other-queue")
                              .withQuery(QueueQuery.fattest(1))))
          .isInstanceOf(UnknownStateStoreException.class)
          .hasMessageContaining("other-queue");
      application.stop();
      assertThatThrownBy(() -> results(streams.get(), QueueQuery.fattest(1)))
          .isInstanceOf(StreamsStoppedException.class);
    }
  }

  @Test
  void nobodyWaitsLongForATaskThatIsBusyHoweverManyAsk() throws Exception {
    CountDownLatch free = new CountDownLatch(1);
    CountDownLatch busy = new CountDownLatch(1);
    Step step =
        new Step(
            () -> {
              busy.countDown();
              await(free);
            });
    try (Application application = application(step, 1, 0);
        Load load = new Load(broker.bootstrapServers(), application.in(), 0, 1, 5)) {
      KafkaStreams streams = start(application, patient(1000));
      load.run(Duration.ofMillis(500));
      await(busy);
      Map<String, Long> failures = new HashMap<>();
      long startNanos = System.nanoTime();
      for (Future<QueryResult<QueueState>> asked :
          ask(2 * MOST_WAITING, () -> results(streams, QueueQuery.fattest(5)).get(0))) {
        failures.merge(asked.get().getFailureMessage(), 1L, Long::sum);
      }
      Duration took = Duration.ofNanos(System.nanoTime() - startNanos);
      free.countDown();
      System.out.println(
          2 * MOST_WAITING + " queries of a busy task took " + took + ": " + failures);
      assertThat(failures)
          .containsOnlyKeys(
              "at most 64 queries can wait, and as many do", "the task did not answer within PT2S");
      assertThat(failures.get("the task did not answer within PT2S"))
          .isGreaterThanOrEqualTo(MOST_WAITING);
      assertThat(took).isBetween(PATIENCE, PATIENCE.multipliedBy(4));

      Patience.await(
          "it answers again", () -> results(streams, QueueQuery.fattest(5)).get(0).isSuccess());
      application.stop();
    }
  }

  @Test
  void everybodyIsAnsweredWhileTheApplicationStopsAndStarts() throws Exception {
    try (Application application = application(new Step(() -> {}), 2, 0);
        Load load = new Load(broker.bootstrapServers(), application.in(), 1000, 50, 5)) {
      AtomicReference<KafkaStreams> streams = new AtomicReference<>(start(application, patient(1)));
      load.run(Duration.ofSeconds(1));
      AtomicBoolean end = new AtomicBoolean();
      LongAdder answered = new LongAdder();
      LongAdder refused = new LongAdder();
      List<Future<Void>> asking =
          ask(
              8,
              () -> {
                while (!end.get()) {
                  long startNanos = System.nanoTime();
                  try {
                    for (QueryResult<QueueState> result :
                        results(streams.get(), QueueQuery.fattest(5)).values()) {
                      (result.isSuccess() ? answered : refused).increment();
                      if (result.isFailure()) {
                        assertThat(result.getFailureReason()).isEqualTo(FailureReason.NOT_ACTIVE);
                      }
                    }
                  } catch (StreamsStoppedException | StreamsNotStartedException e) {
                    refused.increment();
                    LockSupport.parkNanos(1_000_000); // at once otherwise, again and again
                  }
                  assertThat(Duration.ofNanos(System.nanoTime() - startNanos))
                      .isLessThan(PATIENCE.multipliedBy(3)); // two tasks, one after the other
                }
                return null;
              });
      for (int life = 0; life < 3; life++) {
        long before = answered.sum();
        Patience.await(
            "answers come, or the end",
            () -> answered.sum() > before + 100 || asking.stream().anyMatch(Future::isDone));
        application.stop();
        streams.set(start(application, patient(1)));
      }
      end.set(true);
      for (Future<Void> one : asking) {
        one.get();
      }
      System.out.println(
          "through three restarts: " + answered + " answers, " + refused + " refusals");
      assertThat(refused.sum()).isPositive();
      application.stop();
    }
  }

  @Test
  void askingAllTheTimeDoesNotSlowTheTaskNoticeably() throws Exception {
    Step step = new Step(() -> {});
    try (Application application = application(step, 1, 0);
        Load load = new Load(broker.bootstrapServers(), application.in(), 30_000, 2000, 5)) {
      KafkaStreams streams = start(application, patient(5000));
      load.run(Duration.ofSeconds(2));
      Patience.await("all is read", () -> application.committed() >= load.sent());

      double undisturbed = perSecond(step);
      AtomicBoolean end = new AtomicBoolean();
      LongAdder answered = new LongAdder();
      List<Future<Void>> asking =
          ask(
              4,
              () -> {
                while (!end.get()) {
                  results(streams, QueueQuery.fattest(100))
                      .values()
                      .forEach(QueryResult::getResult);
                  answered.increment();
                }
                return null;
              });
      Patience.await("answers come", () -> answered.sum() > 10);
      double disturbed = perSecond(step);
      end.set(true);
      for (Future<Void> one : asking) {
        one.get();
      }
      System.out.printf(
          "%.0f records/s undisturbed, %.0f with 4 threads asking, %s answers%n",
          undisturbed, disturbed, answered);
      assertThat(disturbed).isGreaterThan(undisturbed / 2);
      application.stop();
    }
  }

  /** Over so many records, not so much time: a pause of the machine weighs less. */
  private static double perSecond(Step step) throws Exception {
    long before = step.calls();
    long startNanos = System.nanoTime();
    Patience.await("records are served", () -> step.calls() > before + 10_000);
    return (step.calls() - before) * 1e9 / (System.nanoTime() - startNanos);
  }

  private <T> List<Future<T>> ask(int threads, Callable<T> question) {
    List<Future<T>> asked = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      asked.add(callers.submit(question));
    }
    return asked;
  }

  private static QueueQuery flow(String key) {
    return QueueQuery.flow(key.getBytes(StandardCharsets.UTF_8));
  }

  private static QueueState.FlowQueue flowOf(List<QueueState> states, String key) {
    Bytes flow = Bytes.wrap(key.getBytes(StandardCharsets.UTF_8));
    return states.stream()
        .flatMap(state -> state.flows().stream())
        .filter(one -> one.flow().equals(flow))
        .collect(
            Collectors.collectingAndThen(
                Collectors.toList(),
                found -> {
                  assertThat(found).hasSize(1);
                  return found.get(0);
                }));
  }

  private static List<QueueState> answers(KafkaStreams streams, QueueQuery query) {
    return Stream.of(results(streams, query))
        .flatMap(results -> results.values().stream())
        .map(QueryResult::getResult)
        .toList();
  }

  /** By partition. */
  private static Map<Integer, QueryResult<QueueState>> results(
      KafkaStreams streams, QueueQuery query) {
    return streams.query(StateQueryRequest.inStore(STORE).withQuery(query)).getPartitionResults();
  }

  private static KafkaStreams start(Application application, ShaperOptions.Builder options)
      throws InterruptedException {
    AtomicReference<KafkaStreams> streams = new AtomicReference<>();
    application.start(options.build(), streams::set);
    return streams.get();
  }

  private static ShaperOptions.Builder patient(double rate) {
    return ShaperOptions.builder().rate(rate).target(NEVER).interval(NEVER.multipliedBy(2));
  }

  private static Application application(Step step, int partitions, int standbys) throws Exception {
    return new Application(
        admin, broker.bootstrapServers(), config(standbys), step::processor, partitions);
  }

  private static Map<String, Object> config(int standbys) {
    return Map.of(
        StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG,
        standbys,
        StreamsConfig.COMMIT_INTERVAL_MS_CONFIG,
        100);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException("must not be interrupted", e);
    }
  }
}
