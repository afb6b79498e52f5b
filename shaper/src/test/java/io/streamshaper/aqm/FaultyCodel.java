package io.streamshaper.aqm;

import java.util.function.BiPredicate;

/** CoDel with the faults that the product must not have, to show what they do. */
final class FaultyCodel extends Codel {
  /** Which backlog is tolerated. */
  enum BacklogCheck {
    /** The flow's own, as in the product. */
    PER_FLOW,
    /** That of all flows together, as in Linux. */
    GLOBAL,
    /** None. */
    OFF
  }

  private final long mtu;
  private final BacklogCheck backlogCheck;
  private final boolean resetOnEmpty;

  private FqCodel<?, ?> scheduler;
  private long otherBacklogs;
  private boolean judged;

  FaultyCodel(Settings settings, BacklogCheck backlogCheck, boolean resetOnEmpty) {
    super(
        settings.targetNanos,
        settings.intervalNanos,
        settings.mtu,
        settings.ceilingNanos,
        settings.marking,
        settings.markThresholdNanos);
    this.mtu = settings.mtu;
    this.backlogCheck = backlogCheck;
    this.resetOnEmpty = resetOnEmpty;
  }

  /** Names the scheduler whose total is looked at; it can't exist before this object does. */
  void watch(FqCodel<?, ?> watched) {
    scheduler = watched;
  }

  @Override
  <P extends Packet> P dequeue(
      Flow<?, P> flow, long nowNanos, long elapsedNanos, BiPredicate<P, DropReason> drop) {
    // Worked out now, since the scheduler counts a packet as queued until CoDel has let it go.
    otherBacklogs = scheduler.cost() - flow.backlog;
    boolean wasArmed = flow.armed;
    judged = false;
    P packet =
        super.dequeue(
            flow,
            nowNanos,
            elapsedNanos,
            (dropped, reason) -> {
              judged |= reason != DropReason.EXPIRED;
              return drop.test(dropped, reason);
            });
    if (packet == null && !judged && !resetOnEmpty) {
      flow.armed = wasArmed;
    }
    return packet;
  }

  /** The fault is to remember an alarm for ever, so a flow that has one must not be forgotten. */
  @Override
  boolean mayForget(Flow<?, ?> flow, long elapsedNanos) {
    return !flow.armed && super.mayForget(flow, elapsedNanos);
  }

  @Override
  boolean isTolerated(Flow<?, ?> flow) {
    return switch (backlogCheck) {
      case PER_FLOW -> super.isTolerated(flow);
      case GLOBAL -> otherBacklogs + flow.backlog <= mtu;
      case OFF -> false;
    };
  }
}
