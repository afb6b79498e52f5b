package io.streamshaper.aqm;

import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.BiPredicate;
import java.util.function.ToIntFunction;

/**
 * FQ-CoDel (RFC 8290): one queue for each key, deficit round robin between them, {@link Codel} on
 * each. No clock, no thread, no I/O: time and the work that a call may do are arguments. Not
 * thread-safe.
 *
 * <p>A flow that becomes busy joins the <em>new</em> list, which is served before the <em>old</em>
 * one; once its quantum is used up it joins the old list. A flow that is emptied passes through the
 * old list once before it leaves, so that no key gains by coming back just in time (RFC 8290,
 * section 4.2). Flows are exact: no hashing into buckets, no two keys share one.
 *
 * <p>The service of two flows of equal weight that are always backlogged differs by a bounded cost,
 * at most quantum + 2 x the largest cost (Shreedhar and Varghese, "Efficient Fair Queuing Using
 * Deficit Round Robin", 1995; here a deficit may be overdrawn by one packet instead of saved up).
 */
public final class FqCodel<K, P extends Packet> {
  /** Most idle flows looked at before a packet leaves, to see whether they can be forgotten. */
  private static final int FORGET_BATCH = 2;

  /**
   * Most flows with nothing queued that wait for their turn on a list. While ever more keys come
   * than can be served, the new list is never empty and the turn of the old list never comes.
   */
  static final int MOST_EMPTY_FLOWS = 1 << 17;

  private final Codel codel;
  private final long quantum;
  private final long limit;
  private final long limitBytes;
  private final int dropBatch;
  private final ToIntFunction<? super K> weight;
  private final BiConsumer<? super P, DropReason> onDrop;
  private final BiPredicate<P, DropReason> drop = this::drop;

  private final FlowTable<K, P> flows;
  private final FlowList<K, P> newFlows = new FlowList<>();
  private final FlowList<K, P> oldFlows = new FlowList<>();

  /** Flows with nothing queued whose CoDel memory still matters, in the order they fell idle. */
  private final FlowList<K, P> idleFlows = new FlowList<>();

  private final FlowHeap<K, P> fattest = new FlowHeap<>();

  private long packets;
  private long cost;
  private long bytes;
  private int droppingFlows;
  private long activations;
  private long nowNanos;
  private long elapsedNanos = Long.MIN_VALUE;
  private long work;

  private long visits;

  /**
   * @param quantum credit that a flow of weight 1 gets each round, in cost units, at least 1
   * @param limit most packets queued, at least 1
   * @param limitBytes most bytes queued; 0 means no such limit
   * @param dropBatch most packets dropped each time that a limit is exceeded, at least 1
   * @param hash of a flow's key, null included if that is one; who chooses keys should not be able
   *     to choose them to collide
   * @param weight a flow's multiple of the quantum, at least 1; asked when a flow becomes known,
   *     before anything has changed
   * @param onDrop told of each dropped packet; must not call this object
   * @throws IllegalArgumentException if a parameter is out of range
   */
  public FqCodel(
      Codel codel,
      long quantum,
      long limit,
      long limitBytes,
      int dropBatch,
      ToIntFunction<? super K> hash,
      ToIntFunction<? super K> weight,
      BiConsumer<? super P, DropReason> onDrop) {
    Check.atLeast("quantum", quantum, 1);
    Check.atLeast("limit", limit, 1);
    Check.atLeast("limitBytes", limitBytes, 0);
    Check.atLeast("dropBatch", dropBatch, 1);
    this.codel = codel;
    this.quantum = quantum;
    this.limit = limit;
    this.limitBytes = limitBytes;
    this.dropBatch = dropBatch;
    this.weight = weight;
    flows = new FlowTable<>(hash);
    this.onDrop = onDrop;
  }

  /**
   * Queues a packet and enforces the limits; the packet itself can be among the dropped. Reads no
   * clock.
   *
   * @throws IllegalArgumentException if the flow's weight is below 1; nothing has changed then
   */
  public void enqueue(K key, P packet) {
    append(key, packet);
    enforceLimits();
  }

  /**
   * Queues a packet whatever the limits, as when it was queued before a restart.
   *
   * @throws IllegalArgumentException if the flow's weight is below 1; nothing has changed then
   */
  public void append(K key, P packet) {
    int hash = flows.hash(key);
    Flow<K, P> flow = flows.get(key, hash);
    if (flow == null) {
      flow = flows.add(key, hash, weightOf(key));
    }
    flow.offer(packet);
    packets++;
    cost += packet.cost();
    bytes += packet.bytes();
    if (flow.list == newFlows || flow.list == oldFlows) {
      fattest.grown(flow);
    } else {
      activate(flow);
    }
  }

  /**
   * If a limit is exceeded, the fattest flow loses one batch from its head.
   *
   * @return whether a limit is exceeded still
   */
  public boolean enforceLimits() {
    if (isOverLimit()) {
      dropFromFattest();
    }
    return isOverLimit();
  }

  /** Whether more is queued than a limit allows. */
  public boolean isOverLimit() {
    return packets > limit || (limitBytes > 0 && bytes > limitBytes);
  }

  /**
   * Takes out the next packet that may leave, on one time line for ages and durations.
   *
   * @param timeNanos the present; if it is before an earlier call's, that one counts
   * @param budget most flows passed over and packets dropped in this call, at least 1
   * @return the packet; null if nothing is queued or the budget is used up: see {@link #isEmpty}
   */
  public P dequeue(long timeNanos, long budget) {
    long latestNanos = Math.max(elapsedNanos, timeNanos);
    return dequeue(latestNanos, latestNanos, budget);
  }

  /**
   * The same with a clock that may be corrected: what it shows decides how old packets are, also
   * after it stepped back, while the control law goes by a clock for durations.
   *
   * @param nowNanos the present, on the time line of the packets' timestamps
   * @param elapsedNanos of any origin; if it is before an earlier call's, that one counts
   * @param budget most flows passed over and packets dropped in this call, at least 1
   * @return the packet; null if nothing is queued or the budget is used up: see {@link #isEmpty}
   */
  public P dequeue(long nowNanos, long elapsedNanos, long budget) {
    this.nowNanos = nowNanos;
    this.elapsedNanos = Math.max(this.elapsedNanos, elapsedNanos);
    work = budget;
    forgetIdleFlows(FORGET_BATCH);
    for (Flow<K, P> flow = next(); flow != null && work > 0; flow = next()) {
      visits++;
      if (flow.deficit <= 0 && !isOneTooMany(flow)) {
        flow.deficit += credit(flow);
        moveToOld(flow);
        work--;
        continue;
      }
      P packet = serve(flow);
      if (packet != null) {
        flow.deficit -= packet.cost();
        return packet;
      }
      if (work > 0) {
        retire(flow);
        work--;
      }
    }
    forgetIdleFlows(work);
    return null;
  }

  /** Whether no packet is queued. */
  public boolean isEmpty() {
    return packets == 0;
  }

  /** Whether a packet that came and left now, in time, would change nothing here. */
  public boolean isIdle() {
    return packets == 0 && newFlows.isEmpty() && oldFlows.isEmpty();
  }

  /** Packets queued. */
  public long packets() {
    return packets;
  }

  /** Sum of the cost of the queued packets. */
  public long cost() {
    return cost;
  }

  /** Sum of the bytes of the queued packets. */
  public long bytes() {
    return bytes;
  }

  /** Flows that just became busy. */
  public int newFlows() {
    return newFlows.size();
  }

  /** Flows that stay busy. */
  public int oldFlows() {
    return oldFlows.size();
  }

  /** Flows with nothing queued that are remembered for a while. */
  public int idleFlows() {
    return idleFlows.size();
  }

  /** Flows whose delay is standing and that are being cut. */
  public int droppingFlows() {
    return droppingFlows;
  }

  /** Backlog of the fattest flow, in cost units. */
  public long largestBacklog() {
    Flow<K, P> flow = fattest.peek();
    return flow == null ? 0 : flow.backlog;
  }

  /** The flows with the largest backlog per weight, largest first, at most so many. */
  public List<FlowState<K>> fattest(int most) {
    return fattest.fattest(most).stream().filter(flow -> !flow.isEmpty()).map(Flow::state).toList();
  }

  /** A flow's state; null if nothing is known of it. */
  public FlowState<K> flow(K key) {
    Flow<K, P> flow = flows.get(key, flows.hash(key));
    return flow == null ? null : flow.state();
  }

  /** Flows looked at and heap levels moved since the start: what must not grow with the flows. */
  long steps() {
    return visits + flows.steps + fattest.steps;
  }

  /**
   * The weight of a flow, as its function says.
   *
   * @throws IllegalArgumentException if it is below 1
   */
  public int weightOf(K key) {
    int flowWeight = weight.applyAsInt(key);
    Check.atLeast("weight", flowWeight, 1);
    return flowWeight;
  }

  private void activate(Flow<K, P> flow) {
    if (flow.list == idleFlows) {
      idleFlows.remove(flow);
    }
    flow.deficit = credit(flow);
    flow.activation = activations++;
    newFlows.addLast(flow);
    fattest.add(flow);
  }

  /**
   * What a flow gets each round; saturated, since a product that wraps may never be positive. No
   * division: this runs in almost every dequeue.
   */
  private long credit(Flow<K, P> flow) {
    long product = quantum * flow.weight;
    boolean fits = product > 0 && Math.multiplyHigh(quantum, flow.weight) == 0;
    return fits ? product : Long.MAX_VALUE;
  }

  private Flow<K, P> next() {
    return newFlows.isEmpty() ? oldFlows.first() : newFlows.first();
  }

  private P serve(Flow<K, P> flow) {
    boolean wasDropping = flow.dropping;
    P packet;
    try {
      packet = codel.dequeue(flow, nowNanos, elapsedNanos, drop);
    } finally {
      fattest.shrunk(flow);
      droppingFlows += (flow.dropping ? 1 : 0) - (wasDropping ? 1 : 0);
    }
    if (packet != null) {
      remove(packet);
    }
    return packet;
  }

  private void retire(Flow<K, P> flow) {
    if (flow.list == newFlows && !oldFlows.isEmpty() && !isOneTooMany(flow)) {
      moveToOld(flow);
      return;
    }
    flow.list.remove(flow);
    fattest.remove(flow);
    if (codel.mayForget(flow, elapsedNanos)) {
      flows.remove(flow);
    } else {
      idleFlows.addLast(flow);
    }
  }

  private boolean isOneTooMany(Flow<K, P> flow) {
    return flow.isEmpty() && newFlows.size() + oldFlows.size() > packets + MOST_EMPTY_FLOWS;
  }

  /** Must be called with the first of its list. */
  private void moveToOld(Flow<K, P> flow) {
    if (flow.list == oldFlows) {
      oldFlows.rotate();
    } else {
      newFlows.remove(flow);
      oldFlows.addLast(flow);
    }
  }

  private void dropFromFattest() {
    Flow<K, P> flow = fattest.peek();
    long half = flow.backlog / 2;
    long droppedCost = 0;
    try {
      for (int i = 0; i == 0 || (i < dropBatch && droppedCost < half); i++) {
        P packet = flow.poll();
        droppedCost += packet.cost();
        drop(packet, DropReason.OVERLIMIT);
      }
    } finally {
      fattest.mend(flow);
      if (isOneTooMany(flow)) {
        serve(flow); // finds nothing, as it would in its turn
        retire(flow);
      }
    }
  }

  private boolean drop(P packet, DropReason reason) {
    remove(packet);
    work--;
    onDrop.accept(packet, reason);
    return work > 0;
  }

  private void remove(P packet) {
    packets--;
    if (packets == 0) {
      fattest.clear();
    }
    cost -= packet.cost();
    bytes -= packet.bytes();
  }

  private void forgetIdleFlows(long most) {
    for (long i = 0; i < most; i++) {
      Flow<K, P> flow = idleFlows.first();
      if (flow == null || !codel.mayForget(flow, elapsedNanos)) {
        return;
      }
      idleFlows.remove(flow);
      flows.remove(flow);
    }
  }
}
