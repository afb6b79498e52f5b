package io.streamshaper;

import java.time.Duration;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;

/**
 * A task's queue as it was at an instant.
 *
 * @param records queued
 * @param bytes queued
 * @param busyFlows flows that have or just had records queued
 * @param droppingFlows flows whose delay is standing and that are being cut
 * @param flows the flows that were asked for, fattest first
 */
public record QueueState(
    long records, long bytes, int busyFlows, int droppingFlows, List<FlowQueue> flows) {

  /**
   * The queue of one flow.
   *
   * @param flow serialised; null is the flow of records without a key
   * @param records queued
   * @param bytes queued
   * @param oldestAge age of the record that is next; zero if none is queued
   * @param dropping whether its delay is standing and it is being cut
   */
  public record FlowQueue(
      Bytes flow, long records, long bytes, Duration oldestAge, boolean dropping) {}
}
