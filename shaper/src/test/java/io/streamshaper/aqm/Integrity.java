package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The rules that the structure of a scheduler obeys between any two operations. */
final class Integrity {
  private static final int MEMORY_INTERVALS = 16;

  private final FqCodel<String, KeyedPacket> scheduler;
  private final long intervalNanos;
  private Map<String, Flow<String, KeyedPacket>> known = Map.of();

  Integrity(FqCodel<String, KeyedPacket> scheduler, long intervalNanos) {
    this.scheduler = scheduler;
    this.intervalNanos = intervalNanos;
  }

  void check() {
    FlowList<String, KeyedPacket> newFlows = field(scheduler, "newFlows");
    FlowList<String, KeyedPacket> oldFlows = field(scheduler, "oldFlows");
    FlowList<String, KeyedPacket> idleFlows = field(scheduler, "idleFlows");
    Map<String, Flow<String, KeyedPacket>> flows = known(field(scheduler, "flows"));

    List<Flow<String, KeyedPacket>> listed = members(newFlows);
    listed.addAll(members(oldFlows));
    List<Flow<String, KeyedPacket>> idle = members(idleFlows);
    List<Flow<String, KeyedPacket>> all = new ArrayList<>(listed);
    all.addAll(idle);

    assertThat(flows.values()).as("known flows").containsExactlyInAnyOrderElementsOf(all);
    assertThat(idle)
        .as("idle flows")
        .allMatch(flow -> flow.isEmpty() && flow.heapIndex == FlowHeap.ABSENT);
    checkHeap(newFlows, oldFlows, listed);
    checkTotals(all);
    checkForgotten(flows);
  }

  private List<Flow<String, KeyedPacket>> members(FlowList<String, KeyedPacket> list) {
    List<Flow<String, KeyedPacket>> members = new ArrayList<>();
    Set<Flow<String, KeyedPacket>> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    Flow<String, KeyedPacket> flow = list.first();
    for (int i = 0; i < list.size(); i++) {
      assertThat(seen.add(flow)).as("flow %s is listed once", flow.key).isTrue();
      assertThat(flow.list).as("list of %s", flow.key).isSameAs(list);
      assertThat(flow.next.prev).as("flow before the one after %s", flow.key).isSameAs(flow);
      members.add(flow);
      flow = flow.next;
    }
    assertThat(flow).as("the one after the last of a list").isSameAs(list.first());
    assertThat(list.isEmpty()).as("is an empty list").isEqualTo(list.size() == 0);
    return members;
  }

  /** Walks the chains of the table. */
  private static Map<String, Flow<String, KeyedPacket>> known(
      FlowTable<String, KeyedPacket> table) {
    Flow<String, KeyedPacket>[] chains = field(table, "chains");
    Map<String, Flow<String, KeyedPacket>> flows = new HashMap<>();
    for (Flow<String, KeyedPacket> first : chains) {
      for (Flow<String, KeyedPacket> flow = first; flow != null; flow = flow.chained) {
        assertThat(flows.put(flow.key, flow)).as("another flow of %s", flow.key).isNull();
        assertThat(table.get(flow.key, table.hash(flow.key)))
            .as("what is found for %s", flow.key)
            .isSameAs(flow);
      }
    }
    assertThat(flows).as("size of the table").hasSize(table.size());
    checkSpare(table, flows);
    return flows;
  }

  private static void checkSpare(
      FlowTable<String, KeyedPacket> table, Map<String, Flow<String, KeyedPacket>> flows) {
    int spares = 0;
    Flow<String, KeyedPacket> spare = field(table, "spare");
    for (; spare != null; spare = spare.chained) {
      spares++;
      assertThat(spares).as("spare flows").isLessThanOrEqualTo(FlowTable.MOST_SPARE);
      assertThat(flows.get(spare.key)).as("flow of the forgotten %s", spare.key).isNotSameAs(spare);
      assertThat(spare.isEmpty() && spare.list == null && spare.heapIndex == FlowHeap.ABSENT)
          .as("the spare flow of %s is free", spare.key)
          .isTrue();
      assertThat(spare.backlog == 0 && !spare.dropping && !spare.armed && !spare.outdated)
          .as("the spare flow of %s is clean", spare.key)
          .isTrue();
    }
    assertThat(Integrity.<Integer>field(table, "spares")).as("spare flows").isEqualTo(spares);
  }

  private void checkHeap(
      FlowList<String, KeyedPacket> newFlows,
      FlowList<String, KeyedPacket> oldFlows,
      List<Flow<String, KeyedPacket>> listedFlows) {
    FlowHeap<String, KeyedPacket> fattest = field(scheduler, "fattest");
    int listed = newFlows.size() + oldFlows.size();
    Flow<String, KeyedPacket>[] heap = field(fattest, "heap");
    int inHeap = fattest.size();
    assertThat(inHeap).as("flows in the heap").isLessThanOrEqualTo(listed);
    listedFlows.stream()
        .filter(flow -> !flow.isEmpty())
        .forEach(flow -> assertThat(fattest.contains(flow)).as("%s is in it", flow.key).isTrue());
    int outdated = 0;
    for (int i = 0; i < heap.length; i++) {
      if (i >= inHeap) {
        assertThat(heap[i] == null || (listedFlows.contains(heap[i]) && heap[i].heapIndex == i))
            .as("place %d beyond the end of the heap keeps no forgotten flow", i)
            .isTrue();
      } else {
        assertThat(heap[i].heapIndex).as("heap index of %s", heap[i].key).isEqualTo(i);
        assertThat(heap[i].list).as("list of %s", heap[i].key).isIn(newFlows, oldFlows);
        assertThat(FlowHeap.fatter(heap[i], heap[(i - 1) / 2]))
            .as("%s is fatter than its parent", heap[i].key)
            .isFalse();
        assertThat(heap[i].rank)
            .as("rank of %s", heap[i].key)
            .isGreaterThanOrEqualTo(heap[i].backlog);
        assertThat(heap[i].outdated)
            .as("%s is outdated", heap[i].key)
            .isEqualTo(heap[i].rank > heap[i].backlog);
        outdated += heap[i].outdated ? 1 : 0;
      }
    }
    assertThat(Integrity.<Integer>field(fattest, "outdated"))
        .as("outdated places")
        .isEqualTo(outdated)
        .isLessThanOrEqualTo(FlowHeap.MOST_OUTDATED);
  }

  private void checkTotals(List<Flow<String, KeyedPacket>> all) {
    long packets = 0;
    long cost = 0;
    long bytes = 0;
    for (Flow<String, KeyedPacket> flow : all) {
      long flowPackets = 0;
      long backlog = 0;
      long flowBytes = 0;
      for (Packet packet = flow.peek(); packet != null; packet = packet.next) {
        flowPackets++;
        backlog += packet.cost();
        flowBytes += packet.bytes();
      }
      assertThat(flow.backlog).as("backlog of %s", flow.key).isEqualTo(backlog);
      assertThat(flow.state().packets()).as("packets of %s", flow.key).isEqualTo(flowPackets);
      assertThat(flow.state().bytes()).as("bytes of %s", flow.key).isEqualTo(flowBytes);
      packets += flowPackets;
      cost += backlog;
      bytes += flowBytes;
    }
    assertThat(scheduler.packets()).as("packets").isEqualTo(packets);
    assertThat(scheduler.cost()).as("cost").isEqualTo(cost);
    assertThat(scheduler.bytes()).as("bytes").isEqualTo(bytes);
    assertThat(scheduler.isEmpty()).as("is empty").isEqualTo(packets == 0);
    assertThat((long) scheduler.droppingFlows())
        .as("dropping flows")
        .isEqualTo(all.stream().filter(flow -> flow.dropping).count());
  }

  /** A flow must outlive its last packet for as long as its past can change a decision. */
  private void checkForgotten(Map<String, Flow<String, KeyedPacket>> flows) {
    long nowNanos = Integrity.<Long>field(scheduler, "nowNanos");
    known.forEach(
        (key, flow) -> {
          if (flows.get(key) != flow) {
            assertThat(flow.isEmpty()).as("forgotten flow %s is empty", key).isTrue();
            assertThat(flow.list).as("list of the forgotten flow %s", key).isNull();
            assertThat(flow.hasDropNext && isRemembered(nowNanos - flow.dropNextNanos))
                .as("flow %s was forgotten too early", key)
                .isFalse();
          }
        });
    known = new HashMap<>(flows);
  }

  private boolean isRemembered(long ageNanos) {
    return ageNanos / MEMORY_INTERVALS < intervalNanos;
  }

  /** By reflection, so that the production code keeps its fields to itself. */
  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"}) // the caller knows the type
  private static <T> T field(Object owner, String name) {
    try {
      var field = owner.getClass().getDeclaredField(name);
      field.setAccessible(true);
      return (T) field.get(owner);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("The test must follow a renamed field", e);
    }
  }
}
