package io.streamshaper.aqm;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** What quiet and hot keys cost: flows that come and go, and a flow that is being cut. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class SparseBenchmark {
  private static final int KEYS = 1 << 12;
  private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);

  @Param({"sparse", "dropping"})
  String pattern;

  private FqCodel<Integer, Packet> scheduler;
  private Integer[] names;
  private Packet passing;
  private int next;
  private long now;

  /** Prepares an empty scheduler. */
  @Setup
  public void prepare() {
    names = new Integer[KEYS];
    for (int i = 0; i < KEYS; i++) {
      names[i] = i;
    }
    scheduler =
        new FqCodel<>(
            new Codel(5 * MS, 100 * MS, 1, 10 * MS, false, -1),
            1,
            1000,
            0,
            64,
            key -> 1,
            (packet, reason) -> {});
    passing = new Packet(0, 1, 100, false, Packet.NEVER);
  }

  /** Sparse: a flow appears, leaves and is retired. Dropping: three of four packets are cut. */
  @Benchmark
  public Packet operation() {
    if (pattern.equals("sparse")) {
      scheduler.enqueue(names[next++ & (KEYS - 1)], passing);
      passing = scheduler.dequeue(++now, Long.MAX_VALUE);
      scheduler.dequeue(now, Long.MAX_VALUE);
      return passing;
    }
    now += MS;
    for (int i = 0; i < 4; i++) {
      scheduler.enqueue(names[0], new Packet(now, 1, 100, false, Packet.NEVER));
    }
    return scheduler.dequeue(now, Long.MAX_VALUE);
  }
}
