package io.streamshaper.aqm;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.streamshaper.aqm.FaultyCodel.BacklogCheck;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Why this project exists: a ping every 200 ms beside a flood, behind a device that takes 64
 * packets every 14 ms. A ping waits for the next cycle, up to 14 ms, and 9 times in 14 that is not
 * below the target of 5 ms. If a flow that is found empty does not forget that, the next late ping,
 * long after, is judged by it and dropped.
 *
 * <p>What must be lost can be worked out. With p = 9/14 that a ping is late, independent of the one
 * before, a share p / (1 + p) of the pings meets an alarm, and p of those is late as well: p² / (1
 * + p) = 25.2 % are dropped. In a strict rhythm the waits repeat after seven pings, 0 10 6 2 12 8 4
 * ms, and the second of each two late ones in a row is dropped: 2 of 7 = 28.6 %. A cycle that
 * wanders lies between.
 */
class FoundingExperimentTest {
  private static final int PINGS = 10_000;
  private static final int BATCH = 64;
  private static final long CYCLE = MILLISECONDS.toNanos(14);
  private static final long PERIOD = MILLISECONDS.toNanos(200);
  private static final int FLOOD = 2 * BATCH;

  /** When a ping arrives in the device's cycle. */
  private enum Phase {
    /** 200 ms are 14 cycles and 4 ms. */
    STRICT,
    /** Each cycle takes up to 5 % more or less than 14 ms. */
    WANDERING,
    /** Each ping is up to a cycle late. */
    RANDOM
  }

  private final Settings settings = new Settings();
  private final Random random = new Random(1);
  private int lost;

  FoundingExperimentTest() {
    settings.mtu = 1;
  }

  @ParameterizedTest
  @CsvSource({"STRICT, 28.6", "WANDERING, 26.8", "RANDOM, 25.2"})
  void withoutEitherHalfOfTheFixAQuarterOfThePingsIsLost(Phase phase, double percent) {
    lose(new FaultyCodel(settings, BacklogCheck.GLOBAL, false), phase);
    assertThat(100.0 * lost / PINGS).isCloseTo(percent, within(0.5));
  }

  @ParameterizedTest
  @EnumSource
  void forgettingTheAlarmAloneSavesThemAll(Phase phase) {
    lose(new FaultyCodel(settings, BacklogCheck.GLOBAL, true), phase);
    assertThat(lost).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void lookingAtTheOwnBacklogAloneSavesThemAll(Phase phase) {
    lose(new FaultyCodel(settings, BacklogCheck.PER_FLOW, false), phase);
    assertThat(lost).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void theProductLosesNone(Phase phase) {
    settings.ceilingNanos = 2 * settings.targetNanos;
    run(settings.scheduler(this::dropped), phase);
    assertThat(lost).isZero();
  }

  private void lose(FaultyCodel codel, Phase phase) {
    run(settings.scheduler(codel, this::dropped), phase);
  }

  private void dropped(KeyedPacket packet, DropReason reason) {
    if (packet.key.equals("ping")) {
      lost++;
    }
  }

  private void run(FqCodel<String, KeyedPacket> scheduler, Phase phase) {
    int pings = 0;
    long nextPing = arrival(0, phase);
    for (long now = 0; pings < PINGS || scheduler.newFlows() > 0; now += cycle(phase)) {
      while (pings < PINGS && nextPing <= now) {
        scheduler.enqueue("ping", KeyedPacket.of("ping", pings, nextPing));
        nextPing = arrival(++pings, phase);
      }
      for (int i = 0; i < BATCH; i++) {
        while (scheduler.packets() < FLOOD) {
          scheduler.enqueue("flood", KeyedPacket.of("flood", 0, now));
        }
        scheduler.dequeue(now, Long.MAX_VALUE);
      }
    }
  }

  private long cycle(Phase phase) {
    return phase == Phase.WANDERING ? CYCLE * 95 / 100 + random.nextLong(CYCLE / 10) : CYCLE;
  }

  private long arrival(int ping, Phase phase) {
    return ping * PERIOD + (phase == Phase.RANDOM ? random.nextLong(CYCLE) : 0);
  }
}
