package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Nothing that a call does is linear in the number of flows. Counted in steps, since time would
 * measure the machine: a step is a flow looked at or a level moved in the heap.
 *
 * <p>What is promised is a step or two, and up and down the heap once, for a call that serves
 * backlogged flows whose quantum covers their packets. A call that has to pass over many flows,
 * because they are empty or in deficit, is bounded by its budget instead.
 */
class ScaleTest {
  private static final int FEW = 1_000;
  private static final int MANY = 100_000;

  @ParameterizedTest
  @ValueSource(ints = {1, 64})
  void aHundredTimesAsManyFlowsCostAFewMoreStepsEach(int dropBatch) {
    long few = new Load(FEW, dropBatch).mostSteps();
    long many = new Load(MANY, dropBatch).mostSteps();
    assertThat(few).isLessThanOrEqualTo(3 + 2L * levels(FEW));
    assertThat(many).isLessThanOrEqualTo(3 + 2L * levels(MANY));
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 10, 100})
  void aCallThatPassesOverManyEmptyFlowsEndsWithinItsBudget(long budget) {
    Load load = new Load(MANY, 64);
    load.fill();
    while (!load.scheduler.isEmpty()) {
      load.scheduler.dequeue(0, Long.MAX_VALUE);
    }
    assertThat(load.listedFlows()).isEqualTo(MANY);
    while (load.listedFlows() > 0) {
      load.count(() -> load.scheduler.dequeue(0, budget));
    }
    assertThat(load.most).isLessThanOrEqualTo(budget * (1L + 2L * levels(MANY)));
  }

  private static int levels(int flows) {
    return Integer.SIZE - Integer.numberOfLeadingZeros(flows);
  }

  /** Traffic in random order on this many flows. */
  private static final class Load {
    final FqCodel<String, KeyedPacket> scheduler;
    private final String[] keys;
    private final Random random = new Random(1);
    private long id;
    long most;

    Load(int flows, int dropBatch) {
      Settings settings = new Settings();
      settings.limit = 3L * flows;
      settings.dropBatch = dropBatch;
      scheduler = settings.scheduler((packet, reason) -> {});
      keys = IntStream.range(0, flows).mapToObj(Integer::toString).toArray(String[]::new);
    }

    long mostSteps() {
      fill();
      fill();
      IntStream.range(0, 2 * keys.length).forEach(i -> enqueue(random.nextInt(keys.length)));
      assertThat(scheduler.packets()).isLessThan(4L * keys.length);
      fill();
      IntStream.range(0, keys.length)
          .forEach(i -> count(() -> scheduler.dequeue(0, Long.MAX_VALUE)));
      return most;
    }

    int listedFlows() {
      return scheduler.newFlows() + scheduler.oldFlows();
    }

    void fill() {
      IntStream.range(0, keys.length).forEach(this::enqueue);
    }

    void count(Runnable operation) {
      long before = scheduler.steps();
      operation.run();
      most = Math.max(most, scheduler.steps() - before);
    }

    private void enqueue(int flow) {
      count(() -> scheduler.enqueue(keys[flow], KeyedPacket.of(keys[flow], id++, 0)));
    }
  }
}
