package io.streamshaper.aqm;

import java.util.ArrayDeque;
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

/**
 * An enqueue over the limit: finding the fattest of many flows must not be a scan. The packets that
 * were dropped come in again, so that what is allocated is the algorithm's.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
    value = 1,
    jvmArgs = {"-Xms4g", "-Xmx4g", "-XX:+UseParallelGC"})
public class OverlimitBenchmark {
  private static final int FLOWS = 65_536;
  private static final int PACKETS_PER_FLOW = 16;

  @Param({"1", "64"})
  int batch;

  private FqCodel<Integer, Packet> scheduler;
  private ArrayDeque<Packet> deque;
  private ArrayDeque<Packet> spare;
  private Integer[] names;
  private int next;

  /** Fills every flow up to the limit. */
  @Setup
  public void fill() {
    names = new Integer[FLOWS];
    for (int i = 0; i < FLOWS; i++) {
      names[i] = i;
    }
    spare = new ArrayDeque<>();
    spare.add(packet());
    scheduler =
        new FqCodel<>(
            new Codel(TimeUnit.HOURS.toNanos(1), TimeUnit.HOURS.toNanos(2), 1, -1, false, -1),
            1,
            FLOWS * PACKETS_PER_FLOW,
            0,
            batch,
            Object::hashCode,
            key -> 1,
            (packet, reason) -> spare.add(packet));
    deque = new ArrayDeque<>();
    for (int i = 0; i < FLOWS * PACKETS_PER_FLOW; i++) {
      scheduler.enqueue(names[i % FLOWS], packet());
      deque.add(packet());
    }
  }

  /** With batches, only one enqueue in many is over the limit. */
  @Benchmark
  public long enqueue() {
    scheduler.enqueue(names[next++ & (FLOWS - 1)], spare.poll());
    return scheduler.packets();
  }

  /** As many packets through one queue that loses its head. */
  @Benchmark
  public int arrayDeque() {
    deque.add(spare.poll());
    spare.add(deque.poll());
    return deque.size();
  }

  private static Packet packet() {
    return new Packet(0, 1, 100, false, Packet.NEVER);
  }
}
