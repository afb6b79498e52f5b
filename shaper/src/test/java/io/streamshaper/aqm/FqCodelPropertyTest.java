package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.streamshaper.aqm.CheckedFqCodel.Departure;
import java.math.BigInteger;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToIntFunction;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Builders;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;
import net.jqwik.api.constraints.Size;

/** What holds for any settings and any traffic; the structure is checked after each operation. */
class FqCodelPropertyTest {
  private static final long UNLIMITED = Long.MAX_VALUE;
  private static final int TRIES = 150;
  private static final List<String> KEYS = List.of("a", "b", "c", "d", "e", "f", "");
  private static final double ROUNDING = 1e-9;

  /** An arrival; or, if that is null, a dequeue after some time. */
  record Step(Arrival arrival, long elapsedNanos) {}

  @Property(tries = TRIES)
  void everyPacketLeavesExactlyOnce(
      @ForAll("settings") Settings settings,
      @ForAll("clocks") long start,
      @ForAll("steps") List<Step> steps) {
    CheckedFqCodel checked = run(settings, start, steps, UNLIMITED);
    assertThat(checked.departures.size() + checked.scheduler.packets()).isEqualTo(checked.enqueued);
    while (checked.dequeue(0, UNLIMITED) != null) {}
    assertThat(checked.departures.stream().map(Departure::packet))
        .doesNotHaveDuplicates()
        .hasSize((int) checked.enqueued);
  }

  @Property(tries = TRIES)
  void theOrderInsideAFlowIsKept(
      @ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    Map<String, Long> last = new HashMap<>();
    for (Departure departure : run(settings, 0, steps, UNLIMITED).departures) {
      Long before = last.put(departure.packet().key, departure.packet().id);
      assertThat(before == null || before < departure.packet().id).as("%s", departure).isTrue();
    }
  }

  @Property(tries = TRIES)
  void nothingIsHeldBackWhenThereIsWorkToDo(
      @ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    CheckedFqCodel checked = new CheckedFqCodel(settings, 0);
    for (Step step : steps) {
      KeyedPacket packet = take(checked, step, UNLIMITED);
      assertThat(packet != null || checked.scheduler.isEmpty()).isTrue();
    }
  }

  @Property(tries = TRIES)
  void codelDropsOnlyWhatIsLateAndNotTolerated(
      @ForAll("settings") Settings settings,
      @ForAll("clocks") long start,
      @ForAll("steps") List<Step> steps) {
    assertThat(run(settings, start, steps, UNLIMITED).departures)
        .filteredOn(Departure::droppedByCodel)
        .allMatch(drop -> drop.sojournNanos() >= settings.targetNanos)
        .allMatch(drop -> drop.backlogLeft() > settings.mtu)
        .allMatch(drop -> !settings.marking || !drop.packet().markable());
  }

  @Property(tries = TRIES)
  void codelDropsOnlyAfterAWholeIntervalAboveTarget(
      @ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    Map<String, Long> lastGood = new HashMap<>();
    for (Departure departure : run(settings, 0, steps, UNLIMITED).departures) {
      String key = departure.packet().key;
      if (departure.droppedByCodel() && lastGood.containsKey(key)) {
        assertThat(departure.nowNanos() - lastGood.get(key))
            .as("time above target before %s", departure)
            .isGreaterThanOrEqualTo(settings.intervalNanos);
      } else if (isGood(departure, settings)) {
        lastGood.put(key, departure.nowNanos());
      }
    }
  }

  @Property(tries = TRIES)
  void theCeilingCutsOnlyWhatIsOlder(
      @ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    assertThat(run(settings, 0, steps, UNLIMITED).departures)
        .filteredOn(departure -> departure.reason() == DropReason.CEILING)
        .allMatch(drop -> settings.ceilingNanos >= 0)
        .allMatch(drop -> drop.sojournNanos() > settings.ceilingNanos);
  }

  @Property(tries = TRIES)
  void expiryIsExact(@ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    assertThat(run(settings, 0, steps, UNLIMITED).departures)
        .filteredOn(departure -> departure.reason() != DropReason.OVERLIMIT)
        .allMatch(
            departure ->
                (departure.reason() == DropReason.EXPIRED)
                    == departure.nowNanos() > departure.packet().expiresNanos());
  }

  @Property(tries = TRIES)
  void marksAreSetAsToldAndOnlyOnMarkablePackets(
      @ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    assertThat(run(settings, 0, steps, UNLIMITED).departures)
        .filteredOn(Departure::forwarded)
        .allSatisfy(
            departure -> {
              boolean late = departure.sojournNanos() > settings.markThresholdNanos;
              boolean aboveThreshold = settings.markThresholdNanos >= 0 && late;
              KeyedPacket packet = departure.packet();
              assertThat(packet.marks() & Packet.THRESHOLD_MARK)
                  .isEqualTo(packet.markable() && aboveThreshold ? Packet.THRESHOLD_MARK : 0);
              assertThat((packet.marks() & Packet.CODEL_MARK) == 0 || settings.marking).isTrue();
              assertThat(packet.marks() == 0 || packet.markable()).isTrue();
            });
  }

  /**
   * The number of packets never exceeds its limit. The bytes may, since one arrival can exceed any
   * limit by any amount and causes one overlimit action only, whatever that frees: an arrival after
   * which they do has dropped something. Either action takes its victims from the flow that is the
   * fattest for its weight, at most a batch, and stops at half of its backlog.
   */
  @Property(tries = 2 * TRIES)
  void anArrivalOverALimitCausesOneOverlimitDrop(
      @ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    CheckedFqCodel checked = new CheckedFqCodel(settings, 0);
    for (Step step : steps) {
      long packetsBefore = checked.scheduler.packets();
      long bytesBefore = checked.scheduler.bytes();
      Map<String, Long> backlogs = backlogs(checked);
      take(checked, step, UNLIMITED);
      if (step.arrival() != null) {
        backlogs.merge(step.arrival().key(), step.arrival().cost(), Long::sum);
        boolean over =
            packetsBefore + 1 > settings.limit
                || (settings.limitBytes > 0
                    && bytesBefore + step.arrival().bytes() > settings.limitBytes);
        assertThat(checked.scheduler.packets()).isLessThanOrEqualTo(settings.limit);
        checkOverlimit(settings, backlogs, over, checked.departuresOf(checked.lastOperation()));
      }
    }
  }

  /**
   * Two flows that stay backlogged: over any stretch of time their services, each divided by its
   * weight, differ by at most one quantum and one largest packet of each (Shreedhar and Varghese,
   * "Efficient Fair Queuing Using Deficit Round Robin", 1995, theorem 4.1: fairness measure quantum
   * + 2 x largest packet). A deficit here is overdrawn by one packet instead of saved up, which
   * mirrors the proof and keeps the bound.
   */
  @Property(tries = TRIES)
  void theServiceOfTwoBackloggedFlowsDiffersByABoundedCost(
      @ForAll @LongRange(min = 1, max = 50) long quantum,
      @ForAll @IntRange(min = 1, max = 5) int weightOfA,
      @ForAll @IntRange(min = 1, max = 5) int weightOfB,
      @ForAll @Size(min = 20, max = 100) List<@LongRange(min = 1, max = 40) Long> costsOfA,
      @ForAll @Size(min = 20, max = 100) List<@LongRange(min = 1, max = 40) Long> costsOfB) {
    Settings settings = new Settings();
    settings.quantum = quantum;
    settings.weight = key -> key.equals("a") ? weightOfA : weightOfB;
    CheckedFqCodel checked = new CheckedFqCodel(settings, 0);
    costsOfA.forEach(cost -> checked.enqueue(new Arrival("a", 0, cost, 0, false, Packet.NEVER)));
    costsOfB.forEach(cost -> checked.enqueue(new Arrival("b", 0, cost, 0, false, Packet.NEVER)));

    double lead = 0;
    double least = 0;
    double most = 0;
    while (checked.queued.values().stream().noneMatch(Deque::isEmpty)) {
      KeyedPacket packet = checked.dequeue(0, UNLIMITED);
      double service = packet.cost();
      lead += packet.key.equals("a") ? service / weightOfA : -service / weightOfB;
      least = Math.min(least, lead);
      most = Math.max(most, lead);
    }
    double bound = quantum + max(costsOfA) / weightOfA + max(costsOfB) / weightOfB;
    assertThat(most - least).isLessThanOrEqualTo(bound + ROUNDING);
  }

  @Property(tries = TRIES)
  void equalInputGivesEqualOutputWhateverTheKeysAreCalled(
      @ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    ToIntFunction<String> weight = settings.weight;
    List<String> once = log(run(settings, 0, steps, UNLIMITED));
    assertThat(log(run(settings, 0, steps, UNLIMITED))).isEqualTo(once);

    settings.weight = renamed -> weight.applyAsInt(renamed.substring("renamed ".length()));
    List<Step> renamed = steps.stream().map(FqCodelPropertyTest::rename).toList();
    assertThat(log(run(settings, 0, renamed, UNLIMITED)))
        .isEqualTo(once.stream().map(line -> "renamed " + line).toList());
  }

  @Property(tries = TRIES)
  void aSmallBudgetChangesNoDecisionAndLosesNothing(
      @ForAll("settings") Settings settings,
      @ForAll("steps") List<Step> steps,
      @ForAll @LongRange(min = 1, max = 5) long budget) {
    CheckedFqCodel patient = new CheckedFqCodel(settings, 0);
    for (Step step : steps) {
      if (step.arrival() != null) {
        patient.enqueue(step.arrival());
      } else {
        patient.dequeuePatiently(step.elapsedNanos(), budget);
      }
    }
    assertThat(log(patient)).isEqualTo(log(run(settings, 0, steps, UNLIMITED)));
    while (patient.dequeuePatiently(0, budget) != null) {}
    assertThat(patient.departures).hasSize((int) patient.enqueued);
  }

  @Property(tries = TRIES)
  void aCallEndsWithinItsBudget(
      @ForAll("settings") Settings settings,
      @ForAll("steps") List<Step> steps,
      @ForAll @LongRange(min = 1, max = 5) long budget) {
    CheckedFqCodel checked = new CheckedFqCodel(settings, 0);
    for (Step step : steps) {
      long stepsBefore = checked.scheduler.steps();
      take(checked, step, budget);
      if (step.arrival() == null) {
        assertThat(checked.departuresOf(checked.lastOperation()))
            .filteredOn(departure -> !departure.forwarded())
            .hasSizeLessThanOrEqualTo((int) budget);
        // A visit moves a flow down the heap of at most seven, and another one when it retires.
        assertThat(checked.scheduler.steps() - stepsBefore).isLessThanOrEqualTo(5 * budget);
      }
    }
  }

  @Property(tries = TRIES)
  void aDropCallbackThatThrowsLeavesTheStructureIntact(
      @ForAll("settings") Settings settings,
      @ForAll("steps") List<Step> steps,
      @ForAll @IntRange(min = 1, max = 3) int period) {
    CheckedFqCodel checked = new CheckedFqCodel(settings, 0);
    checked.afterDrop =
        () -> {
          if (checked.departures.size() % period == 0) {
            throw new IllegalStateException("Refused");
          }
        };
    for (Step step : steps) {
      try {
        take(checked, step, UNLIMITED);
      } catch (IllegalStateException e) {
        assertThat(e).hasMessage("Refused");
      }
    }
    checked.afterDrop = () -> {};
    while (checked.dequeue(0, UNLIMITED) != null) {}
    assertThat(checked.departures).hasSize((int) checked.enqueued);
  }

  @Property(tries = TRIES)
  void aWeightThatIsRefusedChangesNothing(
      @ForAll("settings") Settings settings, @ForAll("steps") List<Step> steps) {
    ToIntFunction<String> weight = settings.weight;
    settings.weight = key -> key.equals("refused") ? 0 : weight.applyAsInt(key);
    List<String> undisturbed = log(run(settings, 0, steps, UNLIMITED));

    CheckedFqCodel checked = new CheckedFqCodel(settings, 0);
    for (Step step : steps) {
      assertThatThrownBy(
              () -> checked.scheduler.enqueue("refused", KeyedPacket.of("refused", 0, 0)))
          .hasMessage("weight must be at least 1, was 0");
      take(checked, step, UNLIMITED);
    }
    assertThat(log(checked)).isEqualTo(undisturbed);
  }

  @Provide
  Arbitrary<Settings> settings() {
    Arbitrary<Long> target = Arbitraries.of(0L, 1L, 5L, 50L);
    return Builders.withBuilder(Settings::new)
        .use(target)
        .inSetter((settings, value) -> settings.targetNanos = value)
        .use(Arbitraries.of(1L, 10L, 100L, 1L << 40))
        .inSetter((settings, value) -> settings.intervalNanos = value)
        .use(Arbitraries.of(0L, 0L, 3L, Long.MAX_VALUE))
        .inSetter((settings, value) -> settings.mtu = value)
        .use(Arbitraries.of(-1L, 0L, 20L, Long.MAX_VALUE / 2))
        .inSetter(FqCodelPropertyTest::setCeiling)
        .use(Arbitraries.of(true, false))
        .inSetter((settings, value) -> settings.marking = value)
        .use(Arbitraries.of(-1L, 0L, 30L))
        .inSetter((settings, value) -> settings.markThresholdNanos = value)
        .use(Arbitraries.of(1L, 2L, 7L, 1000L, Long.MAX_VALUE))
        .inSetter((settings, value) -> settings.quantum = value)
        .use(Arbitraries.of(1L, 2L, 10L, 30L, Long.MAX_VALUE))
        .inSetter((settings, value) -> settings.limit = value)
        .use(Arbitraries.of(0L, 1L, 20L, 60L, Long.MAX_VALUE))
        .inSetter((settings, value) -> settings.limitBytes = value)
        .use(Arbitraries.of(1, 2, 64, Integer.MAX_VALUE))
        .inSetter((settings, value) -> settings.dropBatch = value)
        .use(Arbitraries.of(1, 2, 3, Integer.MAX_VALUE).list().ofSize(KEYS.size()))
        .inSetter((settings, weights) -> settings.weight = key -> weights.get(KEYS.indexOf(key)))
        .build();
  }

  private static void setCeiling(Settings settings, long aboveTarget) {
    settings.ceilingNanos = aboveTarget < 0 ? aboveTarget : settings.targetNanos + aboveTarget;
  }

  /** Clocks near the ends of the time line, where sums wrap, and near the origin. */
  @Provide
  Arbitrary<Long> clocks() {
    return Arbitraries.of(
        Long.MIN_VALUE, -200L, 0L, 1L << 60, Long.MAX_VALUE - 1000, Long.MAX_VALUE);
  }

  @Provide
  Arbitrary<List<Step>> steps() {
    Arbitrary<Long> elapsed =
        Arbitraries.frequencyOf(
            Tuple.of(4, Arbitraries.just(0L)),
            Tuple.of(8, Arbitraries.longs().between(1, 20)),
            Tuple.of(1, Arbitraries.longs().between(-10, 2000)));
    Arbitrary<Step> dequeue = elapsed.map(nanos -> new Step(null, nanos));
    Arbitrary<Step> enqueue = arrivals().map(arrival -> new Step(arrival, 0));
    return Arbitraries.frequencyOf(Tuple.of(3, enqueue), Tuple.of(2, dequeue))
        .list()
        .ofMaxSize(200);
  }

  private static Arbitrary<Arrival> arrivals() {
    Arbitrary<Long> ages =
        Arbitraries.frequencyOf(
            Tuple.of(8, Arbitraries.longs().between(0, 60)),
            Tuple.of(1, Arbitraries.of(-30L, Long.MIN_VALUE, Long.MAX_VALUE, 1L << 62)));
    Arbitrary<Long> lives =
        Arbitraries.frequencyOf(
            Tuple.of(8, Arbitraries.just(Packet.NEVER)),
            Tuple.of(1, Arbitraries.longs().between(-1, 30)));
    return Combinators.combine(
            Arbitraries.frequency(
                Tuple.of(6, "a"),
                Tuple.of(3, "b"),
                Tuple.of(1, "c"),
                Tuple.of(1, "d"),
                Tuple.of(1, "e"),
                Tuple.of(1, "f"),
                Tuple.of(1, "")),
            ages,
            Arbitraries.of(1L, 1L, 1L, 2L, 5L, 40L),
            Arbitraries.of(0L, 1L, 5L, 100L),
            Arbitraries.of(true, false),
            lives)
        .as(Arrival::new);
  }

  private static CheckedFqCodel run(Settings settings, long start, List<Step> steps, long budget) {
    CheckedFqCodel checked = new CheckedFqCodel(settings, start);
    steps.forEach(step -> take(checked, step, budget));
    return checked;
  }

  /** Takes a step: the packet that it enqueued or forwarded, or null. */
  private static KeyedPacket take(CheckedFqCodel checked, Step step, long budget) {
    return step.arrival() == null
        ? checked.dequeue(step.elapsedNanos(), budget)
        : checked.enqueue(step.arrival());
  }

  private static Step rename(Step step) {
    Arrival a = step.arrival();
    return a == null
        ? step
        : new Step(
            new Arrival(
                "renamed " + a.key(),
                a.ageNanos(),
                a.cost(),
                a.bytes(),
                a.markable(),
                a.lifeNanos()),
            0);
  }

  private static List<String> log(CheckedFqCodel checked) {
    return checked.departures.stream()
        .map(departure -> departure + ", marks " + departure.packet().marks())
        .toList();
  }

  private static boolean isGood(Departure departure, Settings settings) {
    boolean judged =
        departure.reason() != DropReason.EXPIRED && departure.reason() != DropReason.OVERLIMIT;
    return judged
        && (departure.sojournNanos() < settings.targetNanos
            || departure.backlogLeft() <= settings.mtu);
  }

  private static Map<String, Long> backlogs(CheckedFqCodel checked) {
    Map<String, Long> backlogs = new HashMap<>();
    checked.queued.forEach(
        (key, queue) -> backlogs.put(key, queue.stream().mapToLong(Packet::cost).sum()));
    return backlogs;
  }

  private static void checkOverlimit(
      Settings settings, Map<String, Long> backlogs, boolean over, List<Departure> drops) {
    assertThat(drops).allMatch(drop -> drop.reason() == DropReason.OVERLIMIT);
    if (!over) {
      assertThat(drops).isEmpty();
      return;
    }
    assertThat(drops.stream().map(drop -> drop.packet().key).distinct()).hasSize(1);
    String victim = drops.get(0).packet().key;
    assertThat(backlogs.keySet())
        .allMatch(key -> !isFatter(settings.weight, backlogs, key, victim));

    long half = backlogs.get(victim) / 2;
    long dropped = drops.stream().mapToLong(drop -> drop.packet().cost()).sum();
    long last = drops.get(drops.size() - 1).packet().cost();
    assertThat(drops).hasSizeLessThanOrEqualTo(settings.dropBatch);
    assertThat(drops.size() == settings.dropBatch || dropped >= half).isTrue();
    assertThat(drops.size() == 1 || dropped - last < half).isTrue();
  }

  private static boolean isFatter(
      ToIntFunction<String> weight, Map<String, Long> backlogs, String a, String b) {
    return times(backlogs.get(a), weight.applyAsInt(b))
            .compareTo(times(backlogs.get(b), weight.applyAsInt(a)))
        > 0;
  }

  private static BigInteger times(long a, long b) {
    return BigInteger.valueOf(a).multiply(BigInteger.valueOf(b));
  }

  private static double max(List<Long> costs) {
    return costs.stream().mapToLong(Long::longValue).max().orElseThrow();
  }
}
