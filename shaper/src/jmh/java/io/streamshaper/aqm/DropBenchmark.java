package io.streamshaper.aqm;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** What packets cost that do not get through: of each four, at least three are dropped. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class DropBenchmark {
  private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final int ARRIVALS = 4;

  @Param({"codel", "expired"})
  String reason;

  private FqCodel<Integer, Packet> scheduler;
  private final ArrayDeque<Packet> deque = new ArrayDeque<>();
  private final Integer name = 0;
  private long now;
  private long dropped;

  /** Prepares an empty scheduler. */
  @Setup
  public void prepare() {
    scheduler =
        new FqCodel<>(
            new Codel(5 * MS, 100 * MS, 1, 10 * MS, false, -1),
            1,
            1000,
            0,
            64,
            Object::hashCode,
            key -> 1,
            (packet, cause) -> dropped++);
  }

  /** Four packets come in; one leaves unless all have expired. Time for one packet. */
  @Benchmark
  @OperationsPerInvocation(ARRIVALS)
  public long operation() {
    now += MS;
    for (int i = 0; i < ARRIVALS; i++) {
      scheduler.enqueue(name, packet());
    }
    scheduler.dequeue(now, Long.MAX_VALUE);
    return dropped;
  }

  /** As many packets through one queue. */
  @Benchmark
  @OperationsPerInvocation(ARRIVALS)
  public long arrayDeque() {
    now += MS;
    for (int i = 0; i < ARRIVALS; i++) {
      deque.add(packet());
    }
    for (Packet packet = deque.poll(); packet != null; packet = deque.poll()) {
      dropped += packet.cost();
    }
    return dropped;
  }

  private Packet packet() {
    return new Packet(now, 1, 100, false, reason.equals("expired") ? now - 1 : Packet.NEVER);
  }
}
