package io.streamshaper.aqm;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.MINUTES;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

/** Producers that never slow down: 200 packets a second in, 100 out, for twenty minutes. */
class RampTest {
  private static final long ARRIVAL_GAP = MILLISECONDS.toNanos(5);
  private static final long SERVICE_GAP = MILLISECONDS.toNanos(10);
  private static final long END = MINUTES.toNanos(20);

  private final Settings settings = new Settings();
  private double peakSeconds;
  private double peakAtSeconds;
  private double meanOfTheLastTenth;

  RampTest() {
    settings.targetNanos = MILLISECONDS.toNanos(50);
    settings.intervalNanos = MILLISECONDS.toNanos(1000);
  }

  @Test
  void theControlLawAloneTakesMinutesToCatchUp() {
    run();
    assertThat(peakSeconds).isCloseTo(49.8, within(1.0));
    assertThat(peakAtSeconds).isCloseTo(198, within(5.0));
  }

  @Test
  void theCeilingEndsTheDelayWithinAnInterval() {
    settings.ceilingNanos = 2 * settings.targetNanos;
    run();
    assertThat(peakSeconds).isLessThanOrEqualTo(0.6);
    assertThat(meanOfTheLastTenth).isLessThanOrEqualTo(0.11);
  }

  private void run() {
    FqCodel<String, KeyedPacket> scheduler = settings.scheduler((packet, reason) -> {});
    double sum = 0;
    long counted = 0;
    for (long now = 0; now < END; now += ARRIVAL_GAP) {
      scheduler.enqueue("k", KeyedPacket.of("k", 0, now));
      KeyedPacket packet = now % SERVICE_GAP == 0 ? scheduler.dequeue(now, Long.MAX_VALUE) : null;
      if (packet != null) {
        double sojourn = packet.sojournNanos(now) / 1e9;
        if (sojourn > peakSeconds) {
          peakSeconds = sojourn;
          peakAtSeconds = now / 1e9;
        }
        if (now >= END / 10 * 9) {
          sum += sojourn;
          counted++;
        }
      }
    }
    meanOfTheLastTenth = sum / counted;
  }
}
