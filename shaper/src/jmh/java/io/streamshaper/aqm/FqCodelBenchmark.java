package io.streamshaper.aqm;

import java.util.ArrayDeque;
import java.util.SplittableRandom;
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
 * One enqueue and one dequeue while many flows are busy. Packets are used again and again, so that
 * what is allocated is the algorithm's.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
    value = 1,
    jvmArgs = {"-Xms4g", "-Xmx4g", "-XX:+UseParallelGC"})
public class FqCodelBenchmark {
  private static final int PACKETS_PER_FLOW = 16;
  private static final int LEAST_KEYS = 1 << 20;

  @Param({"1", "1000", "65536"})
  int flows;

  @Param({"cyclic", "random"})
  String keys;

  private FqCodel<Integer, Packet> scheduler;
  private ArrayDeque<Packet> deque;
  private Integer[] sequence;
  private int next;
  private long now;

  /** Fills every flow. */
  @Setup
  public void fill() {
    Integer[] names = new Integer[flows];
    for (int i = 0; i < flows; i++) {
      names[i] = i;
    }
    SplittableRandom random = new SplittableRandom(1);
    // A multiple of the flows: else some would run empty each time that the sequence starts over.
    sequence = new Integer[(LEAST_KEYS + flows - 1) / flows * flows];
    for (int i = 0; i < sequence.length; i++) {
      sequence[i] = names[keys.equals("cyclic") ? i % flows : random.nextInt(flows)];
    }
    scheduler =
        new FqCodel<>(
            new Codel(TimeUnit.HOURS.toNanos(1), TimeUnit.HOURS.toNanos(2), 1, -1, false, -1),
            1,
            Integer.MAX_VALUE,
            0,
            64,
            Object::hashCode,
            key -> 1,
            (packet, reason) -> {});
    deque = new ArrayDeque<>();
    for (int i = 0; i < flows * PACKETS_PER_FLOW; i++) {
      scheduler.enqueue(names[i % flows], new Packet(0, 1, 100, false, Packet.NEVER));
      deque.add(new Packet(0, 1, 100, false, Packet.NEVER));
    }
  }

  /** A packet leaves, and comes in again for the next key. */
  @Benchmark
  public Packet pair() {
    Packet packet = scheduler.dequeue(++now, Long.MAX_VALUE);
    scheduler.enqueue(nextKey(), packet);
    return packet;
  }

  /** The same packets through one queue. */
  @Benchmark
  public Packet arrayDeque() {
    Packet packet = deque.poll();
    deque.add(packet);
    return packet;
  }

  private Integer nextKey() {
    Integer key = sequence[next++];
    if (next == sequence.length) {
      next = 0;
    }
    return key;
  }
}
