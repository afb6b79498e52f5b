package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.QueryResult;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class InquiriesTest {
  private static final Duration BOUND = Duration.ofSeconds(20);
  private static final QueueQuery QUERY = QueueQuery.fattest(1);
  private static final QueueState STATE = new QueueState(7, 700, 1, 0, List.of());

  private final Inquiries inquiries = new Inquiries();
  private final ExecutorService callers = Executors.newCachedThreadPool();

  @AfterEach
  void endCallers() throws InterruptedException {
    callers.shutdownNow();
    assertThat(callers.awaitTermination(BOUND.toSeconds(), TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void theTaskAnswersFromItsOwnThread() {
    inquiries.open();
    CompletableFuture<QueryResult<QueueState>> asked = ask();
    List<Thread> answering = new ArrayList<>();
    answerUntil(
        asked::isDone,
        query -> {
          answering.add(Thread.currentThread());
          assertThat(query).isSameAs(QUERY);
          return STATE;
        });
    assertThat(asked.join().getResult()).isSameAs(STATE);
    assertThat(answering).containsExactly(Thread.currentThread());
  }

  @Test
  void whoeverAsksATaskThatIsNotOpenIsToldSoAtOnce() {
    assertThat(inquiries.ask(QUERY).getFailureReason()).isEqualTo(FailureReason.NOT_ACTIVE);
    inquiries.open();
    inquiries.close();
    assertThat(inquiries.ask(QUERY).getFailureReason()).isEqualTo(FailureReason.NOT_ACTIVE);
  }

  @Test
  void aTaskThatEndsAnswersThoseWhoWait() {
    inquiries.open();
    List<CompletableFuture<QueryResult<QueueState>>> asked = askMany(Inquiries.MOST_WAITING);
    await(() -> inquiries.waiting() == Inquiries.MOST_WAITING);
    inquiries.close();
    assertThat(asked)
        .allSatisfy(
            one -> assertThat(one.join().getFailureReason()).isEqualTo(FailureReason.NOT_ACTIVE));
  }

  @Test
  void oneTooManyIsTurnedAwayAtOnce() {
    inquiries.open();
    List<CompletableFuture<QueryResult<QueueState>>> asked = askMany(Inquiries.MOST_WAITING);
    await(() -> inquiries.waiting() == Inquiries.MOST_WAITING);
    QueryResult<QueueState> turnedAway = inquiries.ask(QUERY);
    inquiries.answer(query -> STATE);

    assertThat(turnedAway.getFailureReason()).isEqualTo(FailureReason.STORE_EXCEPTION);
    assertThat(turnedAway.getFailureMessage())
        .isEqualTo("at most 64 queries can wait, and as many do");
    assertThat(asked).allSatisfy(one -> assertThat(one.join().getResult()).isSameAs(STATE));
  }

  @Test
  void nobodyWaitsForABusyTaskLongerThanTwoSecondsAndThenOthersMay() {
    inquiries.open();
    long start = System.nanoTime();
    List<CompletableFuture<QueryResult<QueueState>>> asked = askMany(Inquiries.MOST_WAITING);
    assertThat(asked)
        .allSatisfy(
            one -> {
              assertThat(one.join().getFailureReason()).isEqualTo(FailureReason.STORE_EXCEPTION);
              assertThat(one.join().getFailureMessage())
                  .isEqualTo("the task did not answer within PT2S");
            });
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(Inquiries.PATIENCE, BOUND);

    CompletableFuture<QueryResult<QueueState>> next = ask();
    AtomicInteger answered = new AtomicInteger();
    answerUntil(
        next::isDone,
        query -> {
          answered.incrementAndGet();
          return STATE;
        });
    assertThat(next.join().getResult()).isSameAs(STATE);
    assertThat(answered).as("no work for those who have left").hasValue(1);
  }

  @Test
  void aCallerThatIsInterruptedReturnsAndStaysInterrupted() {
    inquiries.open();
    Thread.currentThread().interrupt();
    QueryResult<QueueState> result = inquiries.ask(QUERY);
    assertThat(Thread.interrupted()).isTrue();
    assertThat(result.getFailureMessage()).isEqualTo("interrupted");
    assertThat(inquiries.waiting()).isZero();
  }

  @Test
  void anAnswerThatFailsReachesTheCallerAndLeavesTheTaskAlone() {
    inquiries.open();
    CompletableFuture<QueryResult<QueueState>> asked = ask();
    answerUntil(
        asked::isDone,
        query -> {
          throw new IllegalStateException("boom");
        });
    assertThat(asked.join().getFailureReason()).isEqualTo(FailureReason.STORE_EXCEPTION);
    assertThat(asked.join().getFailureMessage())
        .isEqualTo("the task could not answer: java.lang.IllegalStateException: boom");
  }

  /**
   * A recycled task closes and opens while others ask. In each of its lives each of them is
   * answered, and at each end told so: nobody is left waiting for a task that has ended, and nobody
   * who saw it end keeps it from opening again.
   */
  @Test
  void nobodyIsForgottenWhileTheTaskComesAndGoes() {
    int some = 4;
    AtomicIntegerArray answers = new AtomicIntegerArray(some);
    AtomicIntegerArray refusals = new AtomicIntegerArray(some);
    AtomicBoolean stop = new AtomicBoolean();
    List<CompletableFuture<Void>> asking = new ArrayList<>();
    for (int i = 0; i < some; i++) {
      int caller = i;
      asking.add(
          CompletableFuture.runAsync(
              () -> {
                while (!stop.get()) {
                  QueryResult<QueueState> result = inquiries.ask(QUERY);
                  if (result.isFailure()) {
                    assertThat(result.getFailureReason()).isEqualTo(FailureReason.NOT_ACTIVE);
                  }
                  (result.isSuccess() ? answers : refusals).incrementAndGet(caller);
                }
              },
              callers));
    }
    BooleanSupplier failed = () -> asking.stream().anyMatch(CompletableFuture::isDone);
    try {
      for (int life = 0; life < 300 && !failed.getAsBoolean(); life++) {
        inquiries.open();
        BooleanSupplier allAnswered = grown(answers);
        answerUntil(() -> failed.getAsBoolean() || allAnswered.getAsBoolean(), query -> STATE);
        inquiries.close();
        BooleanSupplier allRefused = grown(refusals);
        await(() -> failed.getAsBoolean() || allRefused.getAsBoolean());
      }
    } finally {
      stop.set(true);
    }
    asking.forEach(CompletableFuture::join);
  }

  /** Whether each of some counts has gone on from here. */
  private static BooleanSupplier grown(AtomicIntegerArray counts) {
    int[] before = IntStream.range(0, counts.length()).map(counts::get).toArray();
    return () -> IntStream.range(0, before.length).allMatch(i -> counts.get(i) > before[i]);
  }

  private CompletableFuture<QueryResult<QueueState>> ask() {
    return CompletableFuture.supplyAsync(() -> inquiries.ask(QUERY), callers);
  }

  private List<CompletableFuture<QueryResult<QueueState>>> askMany(int callers) {
    List<CompletableFuture<QueryResult<QueueState>>> asked = new ArrayList<>();
    for (int i = 0; i < callers; i++) {
      asked.add(ask());
    }
    return asked;
  }

  private void answerUntil(BooleanSupplier done, Function<QueueQuery, QueueState> task) {
    await(
        () -> {
          inquiries.answer(task);
          return done.getAsBoolean();
        });
  }

  private static void await(BooleanSupplier condition) {
    long deadline = System.nanoTime() + BOUND.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("in time").isLessThan(deadline);
      Thread.onSpinWait();
    }
  }
}
