package io.streamshaper.aqm;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** What quiet keys cost: flows that appear, leave, are forgotten and reappear. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class SparseBenchmark {
  private static final int KEYS = 1 << 12;
  private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);

  private FqCodel<Integer, Packet> scheduler;
  private final ArrayDeque<Packet> deque = new ArrayDeque<>();
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
            Object::hashCode,
            key -> 1,
            (packet, reason) -> {});
    passing = new Packet(0, 1, 100, false, Packet.NEVER);
  }

  /** A packet of another key each time; the second dequeue retires its flow. */
  @Benchmark
  public Packet sparse() {
    scheduler.enqueue(names[next++ & (KEYS - 1)], passing);
    passing = scheduler.dequeue(++now, Long.MAX_VALUE);
    scheduler.dequeue(now, Long.MAX_VALUE);
    return passing;
  }

  /** The same packet through one queue. */
  @Benchmark
  public Packet arrayDeque() {
    deque.add(passing);
    passing = deque.poll();
    return passing;
  }
}
