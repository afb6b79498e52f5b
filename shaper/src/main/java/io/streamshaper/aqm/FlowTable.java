package io.streamshaper.aqm;

import java.util.Objects;
import java.util.function.ToIntFunction;

/**
 * The known flows by key: a hash table whose chains are the flows themselves. What is forgotten is
 * kept for the next key, up to a bound, so that flows that come and go allocate nothing.
 */
final class FlowTable<K, P extends Packet> {
  static final int MOST_SPARE = 4096;

  private final ToIntFunction<? super K> hash;
  private Flow<K, P>[] chains = newArray(16);
  private int size;
  private Flow<K, P> spare;
  private int spares;

  /** Flows of other keys that were passed over since the start. */
  long steps;

  FlowTable(ToIntFunction<? super K> hash) {
    this.hash = hash;
  }

  int hash(K key) {
    return hash.applyAsInt(key);
  }

  /** The flow of a key that has this hash, or null. */
  Flow<K, P> get(K key, int keyHash) {
    Flow<K, P> flow = chains[keyHash & (chains.length - 1)];
    while (flow != null && !(flow.hash == keyHash && Objects.equals(flow.key, key))) {
      steps++;
      flow = flow.chained;
    }
    return flow;
  }

  /** A new flow, of a key that has this hash and no flow. */
  Flow<K, P> add(K key, int keyHash, int weight) {
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
    flow.begin(key, keyHash, weight);
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
        steps++;
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

  @SuppressWarnings({"unchecked", "rawtypes"}) // Java has no generic arrays
  private static <K, P extends Packet> Flow<K, P>[] newArray(int length) {
    return new Flow[length];
  }
}
