package io.streamshaper.aqm;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The flows with packets, and listed ones without, with the fattest on top: an indexed binary heap,
 * so that finding the victim of an overlimit drop is never a scan. Fattest is the largest backlog
 * per weight, compared exactly; among equals the flow that has been listed longest.
 *
 * <p>A flow's place goes by its {@link Flow#rank}, which is at least its backlog: a flow that is
 * served keeps its place until it is on top, and most have grown again by then. How many places may
 * be out of date is bounded, so that {@link #peek} never has to mend more.
 */
final class FlowHeap<K, P extends Packet> {
  static final int ABSENT = -1;

  /** Most places out of date, and so the most that one call may have to mend. */
  static final int MOST_OUTDATED = 1024;

  private Flow<K, P>[] heap = newArray(16);
  private int size;
  private int outdated;

  /** Levels moved since the start. */
  long steps;

  /** The fattest flow, or null. */
  Flow<K, P> peek() {
    while (size > 0 && heap[0].outdated) {
      mend(heap[0]);
    }
    return size == 0 ? null : heap[0];
  }

  /** The fattest flows, fattest first. */
  List<Flow<K, P>> fattest(int most) {
    List<Flow<K, P>> found = new ArrayList<>();
    while (found.size() < most && size > 0) {
      Flow<K, P> flow = peek();
      found.add(flow);
      remove(flow);
    }
    found.forEach(this::add);
    return found;
  }

  int size() {
    return size;
  }

  /** Takes out all flows, which must be empty, in constant time. */
  void clear() {
    size = 0;
    outdated = 0;
  }

  void add(Flow<K, P> flow) {
    clearPlace(flow);
    if (size == heap.length) {
      heap = Arrays.copyOf(heap, 2 * size);
    }
    flow.outdated = false;
    flow.rank = flow.backlog;
    place(flow, size++);
    siftUp(flow);
  }

  /** Also forgets a flow that was taken out with all the others. */
  void remove(Flow<K, P> flow) {
    int hole = flow.heapIndex;
    if (contains(flow)) {
      keepUp(flow);
      Flow<K, P> moved = heap[--size];
      heap[size] = null;
      if (moved != flow) {
        place(moved, hole);
        siftUp(moved);
        siftDown(moved);
      }
    } else {
      clearPlace(flow);
    }
    flow.heapIndex = ABSENT;
    flow.outdated = false;
  }

  /** Where it was when all were taken out, unless another is there by now. */
  private void clearPlace(Flow<K, P> flow) {
    if (flow.heapIndex != ABSENT && heap[flow.heapIndex] == flow) {
      heap[flow.heapIndex] = null;
    }
  }

  /** Must be called after the backlog grew. */
  void grown(Flow<K, P> flow) {
    if (!contains(flow)) {
      add(flow);
    } else if (flow.backlog >= flow.rank) {
      keepUp(flow);
      if (flow.backlog > flow.rank) {
        flow.rank = flow.backlog;
        siftUp(flow);
      }
    }
  }

  /** Must be called after the backlog shrank. */
  void shrunk(Flow<K, P> flow) {
    if (!flow.outdated && flow.backlog < flow.rank && contains(flow)) {
      flow.outdated = true;
      outdated++;
      if (outdated > MOST_OUTDATED) {
        mend(flow);
      }
    }
  }

  /** Takes its place by its backlog. */
  void mend(Flow<K, P> flow) {
    if (contains(flow)) {
      keepUp(flow);
      flow.rank = flow.backlog;
      siftDown(flow);
    }
  }

  /** Of those taken out together, some are still where they were, but beyond the end. */
  boolean contains(Flow<K, P> flow) {
    int index = flow.heapIndex;
    return index >= 0 && index < size && heap[index] == flow;
  }

  /** Its place is, or is about to be, by its backlog. */
  private void keepUp(Flow<K, P> flow) {
    if (flow.outdated) {
      flow.outdated = false;
      outdated--;
    }
  }

  private void siftUp(Flow<K, P> flow) {
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

  private void siftDown(Flow<K, P> flow) {
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

  /** By rank. */
  static boolean fatter(Flow<?, ?> a, Flow<?, ?> b) {
    int order =
        a.weight == b.weight
            ? Long.compare(a.rank, b.rank)
            : compareProducts(a.rank, b.weight, b.rank, a.weight);
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
