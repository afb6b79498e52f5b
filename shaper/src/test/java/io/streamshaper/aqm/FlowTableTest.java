package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class FlowTableTest {
  private final FlowTable<String, KeyedPacket> table = new FlowTable<>(key -> 0);

  /** Else the tests that count them would prove nothing. */
  @Test
  void everyLinkOfAChainThatIsFollowedIsCounted() {
    Flow<String, KeyedPacket> first = add("a");
    add("b");
    add("c");
    assertThat(table.steps).isZero();
    assertThat(table.get("a", 0)).isSameAs(first);
    assertThat(table.steps).as("past c and b").isEqualTo(2);
    table.remove(first);
    assertThat(table.steps).as("past c, to b, which points to it").isEqualTo(2 + 1);
  }

  @Test
  void asManyForgottenFlowsAreUsedAgainAsAreKept() {
    List<Flow<String, KeyedPacket>> flows = new ArrayList<>();
    for (int i = 0; i < FlowTable.MOST_SPARE + 1; i++) {
      flows.add(add("k" + i));
    }
    Set<Flow<String, KeyedPacket>> old = Collections.newSetFromMap(new IdentityHashMap<>());
    for (int i = flows.size() - 1; i >= 0; i--) {
      table.remove(flows.get(i)); // the last in is first in its chain
      old.add(flows.get(i));
    }
    for (int i = 0; i < FlowTable.MOST_SPARE; i++) {
      assertThat(old.remove(add("n" + i))).isTrue();
    }
    assertThat(old).as("not kept").hasSize(1).doesNotContain(add("new"));
  }

  private Flow<String, KeyedPacket> add(String key) {
    return table.add(key, 0, 1);
  }
}
