package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FlowHeapTest {
  /** Many more than may be out of date. */
  private static final int FLOWS = 3 * FlowHeap.MOST_OUTDATED;

  private static final Comparator<Flow<Integer, Packet>> FATTEST_FIRST =
      Comparator.<Flow<Integer, Packet>>comparingDouble(flow -> (double) flow.backlog / flow.weight)
          .reversed()
          .thenComparing(flow -> flow.activation);

  private final FlowHeap<Integer, Packet> heap = new FlowHeap<>();
  private final List<Flow<Integer, Packet>> flows =
      Stream.generate(this::flow).limit(FLOWS).toList();
  private int made;

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3})
  void theFattestOfManyFlowsIsFoundHoweverManyHaveShrunk(long seed) {
    Random random = new Random(seed);
    for (int round = 0; round < 60; round++) {
      boolean growing = round / 10 % 2 == 0;
      for (int i = 0; i < FLOWS; i++) {
        Flow<Integer, Packet> flow = flows.get(random.nextInt(FLOWS));
        if (growing == random.nextInt(10) < 7) {
          flow.offer(new Packet(0, 1 + random.nextInt(3), 0, false, Packet.NEVER));
          heap.grown(flow);
        } else if (flow.poll() != null) {
          heap.shrunk(flow);
        }
        if (random.nextInt(100) == 0) {
          heap.remove(flow);
          heap.add(flow);
        }
      }
      int most = round % 2 == 0 ? 1 : 50;
      List<Flow<Integer, Packet>> fattest =
          flows.stream().sorted(FATTEST_FIRST).limit(most).toList();
      assertThat(heap.peek()).isSameAs(fattest.get(0));
      assertThat(heap.fattest(most)).isEqualTo(fattest);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3})
  void flowsTakenOutTogetherComeBackOneByOneAndLeaveNothingBehind(long seed) {
    Random random = new Random(seed);
    for (int round = 0; round < 100; round++) {
      List<Flow<Integer, Packet>> some = new ArrayList<>(flows);
      Collections.shuffle(some, random);
      some = some.subList(0, random.nextInt(20));
      for (Flow<Integer, Packet> flow : some) {
        flow.offer(new Packet(0, 1 + random.nextInt(3), 0, false, Packet.NEVER));
        heap.grown(flow);
      }
      if (round > 0) { // before, all are in it
        assertThat(heap.size()).isEqualTo(some.size());
        assertThat(heap.fattest(FLOWS)).isEqualTo(some.stream().sorted(FATTEST_FIRST).toList());
      }
      for (Flow<Integer, Packet> flow : some) {
        flow.poll();
        heap.shrunk(flow);
      }
      heap.clear();
      assertThat(heap.peek()).isNull();
      assertThat(heap.fattest(1)).isEmpty();
      if (random.nextBoolean()) {
        some.forEach(heap::remove);
        assertThat(some).allMatch(flow -> flow.heapIndex == FlowHeap.ABSENT && !flow.outdated);
      }
    }
  }

  /** Weights are powers of two, so that a double is exact. */
  private Flow<Integer, Packet> flow() {
    Flow<Integer, Packet> flow = new Flow<>();
    flow.begin(made, made, 1 << made % 3);
    flow.activation = made++;
    heap.add(flow);
    return flow;
  }
}
