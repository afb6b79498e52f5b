package io.streamshaper.aqm;

/**
 * An intrusive FIFO of flows; a flow is on at most one list, at most once. A ring, so that the
 * first becomes the last without touching the others.
 */
final class FlowList<K, P extends Packet> {
  private Flow<K, P> first;
  private int size;

  Flow<K, P> first() {
    return first;
  }

  int size() {
    return size;
  }

  boolean isEmpty() {
    return first == null;
  }

  void addLast(Flow<K, P> flow) {
    flow.list = this;
    if (first == null) {
      first = flow;
      flow.prev = flow;
      flow.next = flow;
    } else {
      flow.prev = first.prev;
      flow.next = first;
      flow.prev.next = flow;
      first.prev = flow;
    }
    size++;
  }

  /** The first becomes the last. */
  void rotate() {
    first = first.next;
  }

  void remove(Flow<K, P> flow) {
    if (size == 1) {
      first = null;
    } else {
      if (flow == first) {
        first = flow.next;
      }
      flow.prev.next = flow.next;
      flow.next.prev = flow.prev;
    }
    flow.prev = null;
    flow.next = null;
    flow.list = null;
    size--;
  }
}
