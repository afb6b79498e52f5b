package io.streamshaper.examples.page;

import java.util.List;
import java.util.Map;

/** What the page shows of an instant. A figure that is not known is null. */
public record Snapshot(Point point, Now now, List<Setting> settings) {

  /**
   * What only the newest snapshot shows.
   *
   * @param state of the application, a word
   * @param switches null: there are none
   */
  public record Now(String state, Queue queue, Switches switches) {}

  /**
   * What is kept for the charts.
   *
   * @param shaped whether the shaper is in the topology
   * @param perSecond records since the point before: {@code in}, {@code forwarded}, and dropped by
   *     reason
   * @param delays of what was forwarded since the point before, by whose they are
   * @param unread records in the topic, not read yet
   */
  public record Point(
      long atMs,
      boolean shaped,
      Map<String, Double> perSecond,
      Map<String, Delay> delays,
      Long queued,
      Long unread) {}

  /** In milliseconds; null if nothing was forwarded. */
  public record Delay(Double p50, Double p99, Double max) {}

  /** What this instance has queued. */
  public record Queue(
      long records, long bytes, int busyFlows, int droppingFlows, List<FlowQueue> fattest) {}

  /** One flow's queue in one task. */
  public record FlowQueue(
      String flow, int partition, long records, long bytes, long oldestMs, boolean dropping) {}

  /**
   * One setting in force.
   *
   * @param value null: off, or worked out later
   * @param chosen whether it differs from the default
   */
  public record Setting(String name, Object value, boolean chosen, String documentation) {}

  /** What the page can switch, as it was last asked for. */
  public record Switches(boolean hot, boolean shaper) {}
}
