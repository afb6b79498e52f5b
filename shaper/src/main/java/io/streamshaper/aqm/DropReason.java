package io.streamshaper.aqm;

/** Why a packet was dropped; every dropped packet has exactly one reason. */
public enum DropReason {
  /** CoDel's control law asked for it: the flow's delay has been standing (RFC 8289, section 5). */
  CODEL,
  /** It was older than the ceiling while its flow was dropping. */
  CEILING,
  /** It left later than the instant past which it is worthless. */
  EXPIRED,
  /** The scheduler was over a limit and this flow was the fattest (RFC 8290, section 4.1). */
  OVERLIMIT
}
