package io.streamshaper;

import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.query.Query;

/**
 * Asks a shaper's store, {@code NAME-queue}, for the state of its queue, through {@link
 * org.apache.kafka.streams.KafkaStreams#query}, which puts the question to one task after the
 * other. From any thread but Kafka Streams' own: the task answers at its next tick, and the caller
 * waits for it, at most two seconds each. Results of a partition:
 *
 * <ul>
 *   <li>{@code NOT_ACTIVE} from a standby, and from a task that is starting or ending;
 *   <li>{@code STORE_EXCEPTION} if the task did not answer in time, or 64 others wait already;
 *   <li>none from an instance that does not have the task.
 * </ul>
 *
 * @param fattest how many of the flows with the largest backlog to list, 0 to 1000
 * @param flow a serialised flow to list with them, if it has or just had records queued; null: none
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
