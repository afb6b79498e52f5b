package io.streamshaper;

import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.query.Query;

/**
 * Asks a shaper's store, {@code NAME-queue}, for the state of its queue, through {@link
 * org.apache.kafka.streams.KafkaStreams#query}. From any thread: the task answers between two
 * records or at its next tick, and the caller waits for it, at most two seconds. Only active tasks
 * have an answer.
 *
 * @param fattest how many of the flows with the largest backlog to list, 0 to 1000
 * @param flow a serialised flow to list beside them; null: none
 */
public record QueueQuery(int fattest, Bytes flow) implements Query<QueueState> {
  private static final int MOST_FLOWS = 1000;

  /**
   * @throws IllegalArgumentException if the number of flows is out of range
   */
  public QueueQuery {
    if (fattest < 0 || fattest > MOST_FLOWS) {
      throw new IllegalArgumentException(
          "fattest must be between 0 and " + MOST_FLOWS + ", was " + fattest);
    }
  }

  /** The totals, and the flows with the largest backlog. */
  public static QueueQuery fattest(int flows) {
    return new QueueQuery(flows, null);
  }

  /** The totals, and one flow. */
  public static QueueQuery flow(byte[] serialized) {
    return new QueueQuery(0, Bytes.wrap(Objects.requireNonNull(serialized, "flow")));
  }
}
