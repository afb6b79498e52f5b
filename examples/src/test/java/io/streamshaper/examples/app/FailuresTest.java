package io.streamshaper.examples.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class FailuresTest {
  private static final Duration MINUTE = Duration.ofMinutes(1);

  private final Failures failures = new Failures(3, MINUTE);

  @Test
  void oneMoreThanMayBeInAWhileIsTooMuch() {
    assertThat(failures.bearable(0)).isTrue();
    assertThat(failures.bearable(1)).isTrue();
    assertThat(failures.bearable(1)).isTrue();
    assertThat(failures.bearable(MINUTE.toNanos())).isFalse();
  }

  @Test
  void failuresThatAreFarEnoughApartAreBearableForEver() {
    long apart = MINUTE.toNanos() / 3 + 1;
    for (int i = 0; i < 1000; i++) {
      assertThat(failures.bearable(i * apart)).as("failure " + i).isTrue();
    }
  }

  @Test
  void aClockThatOverflowsIsAsGood() {
    for (int i = 0; i < 3; i++) {
      assertThat(failures.bearable(Long.MAX_VALUE - 1 + i)).isTrue();
    }
    assertThat(failures.bearable(Long.MAX_VALUE + 2)).isFalse();
  }
}
