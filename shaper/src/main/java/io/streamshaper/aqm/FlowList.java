package io.streamshaper.aqm;

/** An intrusive FIFO of flows; a flow is on at most one list, at most once. */
final class FlowList<K, P extends Packet> {
  private Flow<K, P> first;
  private Flow<K, P> last;
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
    flow.prev = last;
    if (last == null) {
      first = flow;
    } else {
      last.next = flow;
    }
    last = flow;
    size++;
  }

  void remove(Flow<K, P> flow) {
    if (flow.prev == null) {
      first = flow.next;
    } else {
      flow.prev.next = flow.next;
    }
    if (flow.next == null) {
      last = flow.prev;
    } else {
      flow.next.prev = flow.prev;
    }
    flow.prev = null;
    flow.next = null;
    flow.list = null;
    size--;
  }
}
