package io.streamshaper.aqm;

import java.util.function.BiPredicate;

/**
 * CoDel (RFC 8289, section 5) with a ceiling, expiry and marks: decides, for one flow, which
 * packets are dropped before one is forwarded. Holds the parameters only, so one instance serves
 * every flow; the state is the flow's.
 *
 * <p>A flow's delay is <em>standing</em> when its packets have stayed above the target for a whole
 * interval. Then packets are dropped at a rate that grows with the square root of their number,
 * until the delay is below the target again. Senders that slow down need no more. Kafka's do not,
 * and the square root alone takes minutes to catch up with them: while a flow is dropping, packets
 * older than the ceiling go at once.
 *
 * <p>Two rules keep sparse flows unharmed. A packet that leaves at most {@code mtu} of its own
 * flow's backlog behind is never judged. And a flow that is found empty forgets that it was above
 * the target: what comes next, long after, must not be judged by it.
 */
public class Codel {
  /** How many intervals a flow remembers how hard it had to drop (RFC 8289, section 5.3). */
  private static final int MEMORY_INTERVALS = 16;

  private final long targetNanos;
  private final long intervalNanos;
  private final long mtu;
  private final long ceilingNanos;
  private final boolean marking;
  private final long markThresholdNanos;
  private final long memoryNanos;

  /**
   * @param targetNanos acceptable sojourn, at least 0
   * @param intervalNanos how long the sojourn must exceed it, at least 1
   * @param mtu backlog that is always tolerated, in cost units, at least 0
   * @param ceilingNanos oldest packet forwarded while dropping, at least the target; negative: off
   * @param marking whether markable packets are marked where they would have been dropped
   * @param markThresholdNanos sojourn above which markable packets are marked; negative: off
   * @throws IllegalArgumentException if a parameter is out of range
   */
  public Codel(
      long targetNanos,
      long intervalNanos,
      long mtu,
      long ceilingNanos,
      boolean marking,
      long markThresholdNanos) {
    Check.atLeast("targetNanos", targetNanos, 0);
    Check.atLeast("intervalNanos", intervalNanos, 1);
    Check.atLeast("mtu", mtu, 0);
    if (ceilingNanos >= 0) {
      Check.atLeast("ceilingNanos", ceilingNanos, targetNanos);
    }
    this.targetNanos = targetNanos;
    this.intervalNanos = intervalNanos;
    this.mtu = mtu;
    this.ceilingNanos = ceilingNanos;
    this.marking = marking;
    this.markThresholdNanos = markThresholdNanos;
    this.memoryNanos =
        intervalNanos > Long.MAX_VALUE / MEMORY_INTERVALS
            ? Long.MAX_VALUE
            : MEMORY_INTERVALS * intervalNanos;
  }

  /**
   * Takes packets from the flow until one may be forwarded, and drops the others.
   *
   * @param nowNanos the present, by which packets age; may step back
   * @param elapsedNanos a clock for durations, which the control law goes by; must never step back
   * @param drop told of each drop; answers whether there is time for more
   * @return the packet to forward; null if the flow is empty or there was no more time
   */
  <P extends Packet> P dequeue(
      Flow<?, P> flow, long nowNanos, long elapsedNanos, BiPredicate<P, DropReason> drop) {
    for (P packet = flow.poll(); packet != null; packet = flow.poll()) {
      DropReason reason = judge(flow, packet, nowNanos, elapsedNanos);
      if (reason == null) {
        return packet;
      }
      if (!drop.test(packet, reason)) {
        return null;
      }
    }
    calm(flow);
    flow.armed = false;
    return null;
  }

  /** Whether nothing that this flow remembers can change a decision any more. */
  boolean mayForget(Flow<?, ?> flow, long elapsedNanos) {
    return !flow.hasDropNext || !isRecent(flow, elapsedNanos);
  }

  /** The reason to drop this packet, or null to forward it. */
  private DropReason judge(Flow<?, ?> flow, Packet packet, long nowNanos, long elapsedNanos) {
    if (nowNanos > packet.expiresNanos()) {
      return DropReason.EXPIRED;
    }
    long sojournNanos = packet.sojournNanos(nowNanos);
    DropReason reason = null;
    if (isStanding(flow, sojournNanos, elapsedNanos)) {
      reason = control(flow, packet, sojournNanos, elapsedNanos);
    } else {
      calm(flow);
    }
    if (reason == null
        && packet.markable()
        && markThresholdNanos >= 0
        && sojournNanos > markThresholdNanos) {
      packet.mark(Packet.THRESHOLD_MARK);
    }
    return reason;
  }

  /** Whether the sojourn has exceeded the target for an interval; arms and disarms the alarm. */
  private boolean isStanding(Flow<?, ?> flow, long sojournNanos, long elapsedNanos) {
    if (sojournNanos < targetNanos || isTolerated(flow)) {
      flow.armed = false;
      return false;
    }
    if (!flow.armed) {
      flow.armed = true;
      flow.alarmNanos = elapsedNanos + intervalNanos;
      return false;
    }
    return elapsedNanos >= flow.alarmNanos;
  }

  /** Looks at the flow's own backlog, after the packet was taken; never at the total. */
  boolean isTolerated(Flow<?, ?> flow) {
    return flow.backlog <= mtu;
  }

  private static void calm(Flow<?, ?> flow) {
    flow.dropping = false;
    flow.dropNextPending = false;
  }

  /** What happens to a packet of a flow whose delay is standing. */
  private DropReason control(Flow<?, ?> flow, Packet packet, long sojournNanos, long elapsedNanos) {
    boolean mark = marking && packet.markable();
    DropReason reason = null;
    if (!flow.dropping) {
      startDropping(flow, elapsedNanos);
      reason = DropReason.CODEL;
    } else {
      if (flow.dropNextPending) {
        advance(flow);
      }
      if (elapsedNanos >= flow.dropNextNanos) {
        flow.count++;
        flow.dropNextPending = true;
        if (mark) {
          advance(flow);
        }
        reason = DropReason.CODEL;
      } else if (ceilingNanos >= 0 && sojournNanos > ceilingNanos) {
        reason = DropReason.CEILING;
      }
    }
    if (reason != null && mark) {
      packet.mark(Packet.CODEL_MARK);
      return null;
    }
    return reason;
  }

  private void startDropping(Flow<?, ?> flow, long elapsedNanos) {
    long gained = flow.count - flow.lastCount;
    boolean recent = flow.hasDropNext && isRecent(flow, elapsedNanos);
    flow.dropping = true;
    flow.count = recent ? Math.max(1, gained) : 1;
    flow.lastCount = flow.count;
    flow.hasDropNext = true;
    flow.dropNextNanos = controlLaw(elapsedNanos, flow.count);
  }

  private boolean isRecent(Flow<?, ?> flow, long elapsedNanos) {
    return elapsedNanos - flow.dropNextNanos < memoryNanos;
  }

  private void advance(Flow<?, ?> flow) {
    flow.dropNextNanos = controlLaw(flow.dropNextNanos, flow.count);
    flow.dropNextPending = false;
  }

  /** Must stay one division of doubles: a reciprocal square root or a coarser unit drifts. */
  private long controlLaw(long nanos, long count) {
    return nanos + Math.max(1L, (long) (intervalNanos / Math.sqrt((double) count)));
  }
}
