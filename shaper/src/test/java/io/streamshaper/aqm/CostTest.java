package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What an operation costs on average, counted: time would measure the machine. */
class CostTest {
  private static final int FEW = 1_000;
  private static final int MANY = 1_000_000;
  private static final int OPERATIONS = 100_000;

  /** A flow or two looked at, and what a random place in a heap of any size is above its leaves. */
  private static final double MOST_STEPS = 6;

  /** What comes in while packets leave. */
  enum Traffic {
    /** For each packet that leaves, one of the same flow. */
    CYCLIC,
    /** For each packet that leaves, one for any flow. */
    RANDOM,
    /** Packets of flows that are not known, each leaving at once. */
    SPARSE,
    /** Over the limit: for each packet that comes in, one is dropped. */
    OVERLIMIT
  }

  @ParameterizedTest
  @EnumSource(
      value = Traffic.class,
      names = {"OVERLIMIT"},
      mode = EnumSource.Mode.EXCLUDE)
  void aThousandTimesAsManyFlowsCostNoMoreStepsOnAverage(Traffic traffic) {
    assertThat(new Load(FEW, traffic).stepsPerOperation()).isLessThan(MOST_STEPS);
    assertThat(new Load(MANY, traffic).stepsPerOperation()).isLessThan(MOST_STEPS);
  }

  @ParameterizedTest
  @EnumSource(Traffic.class)
  void onlyThePacketIsAllocated(Traffic traffic) {
    Load load = new Load(FEW, traffic);
    load.run(OPERATIONS); // what grows has grown
    load.run(OPERATIONS);
    assertThat(load.bytesPerOperation()).isLessThan(1);
  }

  private static final class Load {
    private static final int PACKETS_PER_FLOW = 2;

    private final Traffic traffic;
    private final FqCodel<Integer, Packet> scheduler;
    private final Integer[] keys;
    private final ArrayDeque<Packet> left = new ArrayDeque<>();
    private final Random random = new Random(1);
    private int next;

    Load(int flows, Traffic traffic) {
      this.traffic = traffic;
      Settings settings = new Settings();
      int limit = PACKETS_PER_FLOW * flows;
      scheduler =
          new FqCodel<>(
              settings.codel(),
              1,
              limit,
              0,
              1,
              Object::hashCode,
              key -> 1,
              (packet, reason) -> left.add(packet));
      keys = IntStream.range(0, flows).boxed().toArray(Integer[]::new);
      left.add(packet());
      if (traffic != Traffic.SPARSE) {
        IntStream.range(0, limit).forEach(i -> scheduler.enqueue(keys[i % flows], packet()));
      }
    }

    double stepsPerOperation() {
      long before = scheduler.steps();
      run(keys.length);
      return (scheduler.steps() - before) / (double) keys.length;
    }

    double bytesPerOperation() {
      ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
      long thread = Thread.currentThread().getId();
      long before = threads.getThreadAllocatedBytes(thread);
      run(OPERATIONS);
      return (threads.getThreadAllocatedBytes(thread) - before) / (double) OPERATIONS;
    }

    void run(int operations) {
      for (int i = 0; i < operations; i++) {
        Integer key = traffic == Traffic.RANDOM ? keys[random.nextInt(keys.length)] : nextKey();
        switch (traffic) {
          case CYCLIC, RANDOM -> scheduler.enqueue(key, scheduler.dequeue(0, Long.MAX_VALUE));
          case OVERLIMIT -> scheduler.enqueue(key, left.poll());
          case SPARSE -> {
            scheduler.enqueue(key, left.poll());
            left.add(scheduler.dequeue(0, Long.MAX_VALUE));
            scheduler.dequeue(0, Long.MAX_VALUE);
          }
        }
      }
    }

    private Integer nextKey() {
      Integer key = keys[next++];
      next = next == keys.length ? 0 : next;
      return key;
    }

    private static Packet packet() {
      return new Packet(0, 1, 1, false, Packet.NEVER);
    }
  }
}
