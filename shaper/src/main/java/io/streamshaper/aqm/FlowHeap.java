package io.streamshaper.aqm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Queue;

/**
 * The listed flows with the fattest on top: an indexed binary heap, so that finding the victim of
 * an overlimit drop is never a scan. Fattest is the largest backlog per weight, compared exactly;
 * among equals the flow that has been listed longest.
 */
final class FlowHeap<K, P extends Packet> {
  static final int ABSENT = -1;

  private Flow<K, P>[] heap = newArray(16);
  private int size;

  /** Levels moved since the start. */
  long steps;

  /** The fattest flow, or null. */
  Flow<K, P> peek() {
    return heap[0];
  }

  /** The fattest flows, fattest first. Looks at no more than {@code 2 * most + 1} flows. */
  List<Flow<K, P>> fattest(int most) {
    List<Flow<K, P>> found = new ArrayList<>();
    Queue<Flow<K, P>> candidates = new PriorityQueue<>((a, b) -> fatter(a, b) ? -1 : 1);
    addCandidate(candidates, 0);
    while (found.size() < most && !candidates.isEmpty()) {
      Flow<K, P> flow = candidates.poll();
      found.add(flow);
      addCandidate(candidates, 2 * flow.heapIndex + 1);
      addCandidate(candidates, 2 * flow.heapIndex + 2);
    }
    return found;
  }

  private void addCandidate(Queue<Flow<K, P>> candidates, int index) {
    if (index < size) {
      candidates.add(heap[index]);
    }
  }

  int size() {
    return size;
  }

  void add(Flow<K, P> flow) {
    if (size == heap.length) {
      heap = Arrays.copyOf(heap, 2 * size);
    }
    place(flow, size++);
    siftUp(flow);
  }

  void remove(Flow<K, P> flow) {
    int hole = flow.heapIndex;
    flow.heapIndex = ABSENT;
    Flow<K, P> moved = heap[--size];
    heap[size] = null;
    if (moved != flow) {
      place(moved, hole);
      siftUp(moved);
      siftDown(moved);
    }
  }

  /** Must be called after the backlog grew. */
  void siftUp(Flow<K, P> flow) {
    int index = flow.heapIndex;
    while (index > 0) {
      int parent = (index - 1) >>> 1;
      if (!fatter(flow, heap[parent])) {
        break;
      }
      place(heap[parent], index);
      index = parent;
      steps++;
    }
    place(flow, index);
  }

  /** Must be called after the backlog shrank. */
  void siftDown(Flow<K, P> flow) {
    int index = flow.heapIndex;
    for (int child = 2 * index + 1; child < size; child = 2 * index + 1) {
      if (child + 1 < size && fatter(heap[child + 1], heap[child])) {
        child++;
      }
      if (!fatter(heap[child], flow)) {
        break;
      }
      place(heap[child], index);
      index = child;
      steps++;
    }
    place(flow, index);
  }

  private void place(Flow<K, P> flow, int index) {
    heap[index] = flow;
    flow.heapIndex = index;
  }

  static boolean fatter(Flow<?, ?> a, Flow<?, ?> b) {
    int order =
        a.weight == b.weight
            ? Long.compare(a.backlog, b.backlog)
            : compareProducts(a.backlog, b.weight, b.backlog, a.weight);
    return order > 0 || (order == 0 && a.activation < b.activation);
  }

  /** Compares a * b with c * d in 128 bits; none is negative. */
  private static int compareProducts(long a, long b, long c, long d) {
    int high = Long.compare(Math.multiplyHigh(a, b), Math.multiplyHigh(c, d));
    return high != 0 ? high : Long.compareUnsigned(a * b, c * d);
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // Java has no generic arrays
  private static <K, P extends Packet> Flow<K, P>[] newArray(int length) {
    return new Flow[length];
  }
}
