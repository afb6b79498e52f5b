package io.streamshaper.aqm;

import java.util.Objects;

/**
 * The known flows by key: a hash table whose chains are the flows themselves. What is forgotten is
 * kept for the next key, up to a bound, so that flows that come and go allocate nothing.
 */
final class FlowTable<K, P extends Packet> {
  static final int MOST_SPARE = 4096;

  private Flow<K, P>[] chains = newArray(16);
  private int size;
  private Flow<K, P> spare;
  private int spares;

  /** The flow of a key, or null. */
  Flow<K, P> get(K key) {
    int hash = hash(key);
    Flow<K, P> flow = chains[hash & (chains.length - 1)];
    while (flow != null && !(flow.hash == hash && Objects.equals(flow.key, key))) {
      flow = flow.chained;
    }
    return flow;
  }

  /** A new flow, of a key that has none. */
  Flow<K, P> add(K key, int weight) {
    if (size == chains.length) {
      grow();
    }
    Flow<K, P> flow = spare;
    if (flow == null) {
      flow = new Flow<>();
    } else {
      spare = flow.chained;
      spares--;
    }
    flow.begin(key, hash(key), weight);
    chain(flow);
    size++;
    return flow;
  }

  /** Forgets an empty flow that is on no list. */
  void remove(Flow<K, P> flow) {
    int index = flow.hash & (chains.length - 1);
    Flow<K, P> before = chains[index];
    if (before == flow) {
      chains[index] = flow.chained;
    } else {
      while (before.chained != flow) {
        before = before.chained;
      }
      before.chained = flow.chained;
    }
    size--;
    flow.chained = null;
    if (spares < MOST_SPARE) {
      flow.chained = spare;
      spare = flow;
      spares++;
    }
  }

  int size() {
    return size;
  }

  private void grow() {
    Flow<K, P>[] old = chains;
    chains = newArray(2 * old.length);
    for (Flow<K, P> first : old) {
      for (Flow<K, P> flow = first; flow != null; ) {
        Flow<K, P> rest = flow.chained;
        chain(flow);
        flow = rest;
      }
    }
  }

  private void chain(Flow<K, P> flow) {
    int index = flow.hash & (chains.length - 1);
    flow.chained = chains[index];
    chains[index] = flow;
  }

  /** Brings the upper bits down: the index is made of the lower ones. */
  private static int hash(Object key) {
    int hash = Objects.hashCode(key);
    return hash ^ (hash >>> 16);
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // Java has no generic arrays
  private static <K, P extends Packet> Flow<K, P>[] newArray(int length) {
    return new Flow[length];
  }
}
