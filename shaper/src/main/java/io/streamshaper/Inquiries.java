package io.streamshaper;

import java.time.Duration;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.QueryResult;

/**
 * Hands questions from any thread to a task's own and the answers back, so that nobody but the task
 * touches its queue. Thread-safe.
 */
final class Inquiries {
  static final int MOST_WAITING = 64;
  static final Duration PATIENCE = Duration.ofSeconds(2);

  private final BlockingQueue<Inquiry> waiting = new ArrayBlockingQueue<>(MOST_WAITING);
  private volatile boolean open;

  private record Inquiry(QueueQuery query, CompletableFuture<QueryResult<QueueState>> answer) {}

  /** Waits for the task's answer. From any thread but the task's. */
  QueryResult<QueueState> ask(QueueQuery query) {
    if (!open) {
      return notActive();
    }
    Inquiry inquiry = new Inquiry(query, new CompletableFuture<>());
    if (!waiting.offer(inquiry)) {
      return failed("at most " + MOST_WAITING + " queries can wait, and as many do");
    }
    if (!open && waiting.remove(inquiry)) {
      return notActive(); // the task ended meanwhile, and will not see this one
    }
    try {
      return inquiry.answer.get(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      return failed("the task did not answer within " + PATIENCE);
    } catch (ExecutionException e) {
      return failed("the task could not answer: " + e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return failed("interrupted");
    } finally {
      waiting.remove(inquiry); // nobody waits for it any more: others may
    }
  }

  /** Questions without an answer yet. */
  int waiting() {
    return waiting.size();
  }

  /** From now on the task answers. */
  void open() {
    open = true;
  }

  /** On the task's thread; a read of an empty queue if nobody asks. */
  void answer(Function<QueueQuery, QueueState> task) {
    for (Inquiry inquiry = waiting.poll(); inquiry != null; inquiry = waiting.poll()) {
      try {
        inquiry.answer.complete(QueryResult.forResult(task.apply(inquiry.query)));
      } catch (RuntimeException e) {
        inquiry.answer.completeExceptionally(e); // a question must not end the task
      }
    }
  }

  /** The task ends. */
  void close() {
    open = false;
    for (Inquiry inquiry = waiting.poll(); inquiry != null; inquiry = waiting.poll()) {
      inquiry.answer.complete(notActive());
    }
  }

  private static QueryResult<QueueState> notActive() {
    return QueryResult.forFailure(FailureReason.NOT_ACTIVE, "must be an active task");
  }

  private static QueryResult<QueueState> failed(String why) {
    return QueryResult.forFailure(FailureReason.STORE_EXCEPTION, why);
  }
}
