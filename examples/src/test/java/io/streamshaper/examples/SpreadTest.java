package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class SpreadTest {

  @Test
  void theMedianOfAnOddNumberIsTheMiddleOne() {
    assertThat(Spread.of(List.of(9.0, 1.0, 2.0))).isEqualTo(new Spread(1, 2, 9));
  }

  @Test
  void theMedianOfAnEvenNumberLiesBetweenTheMiddleTwo() {
    assertThat(Spread.of(List.of(9.0, 1.0, 2.0, 4.0))).isEqualTo(new Spread(1, 3, 9));
  }

  /** The ratio of the medians would be 2. */
  @Test
  void ratiosAreTakenRoundByRound() {
    assertThat(Spread.ofRatios(List.of(1.0, 4.0, 9.0), List.of(1.0, 2.0, 3.0)))
        .isEqualTo(new Spread(1, 2, 3));
    assertThat(Spread.ofRatios(List.of(1.0, 4.0, 9.0), List.of(2.0, 1.0, 9.0)))
        .isEqualTo(new Spread(0.5, 1, 4));
  }

  @Test
  void roundsThatDoNotMatchAreRefused() {
    assertThatThrownBy(() -> Spread.ofRatios(List.of(1.0), List.of(1.0, 2.0)))
        .hasMessage("rounds must be as many, were 1 and 2");
  }

  @Test
  void nothingMeasuredIsRefused() {
    assertThatThrownBy(() -> Spread.of(List.of()))
        .hasMessage("measured must be at least one, was none");
  }

  @Test
  void aTargetIsReachedAtItsBound() {
    assertThat(Target.atLeast("speed", 1.5, Target.once(1.5)).reached()).isTrue();
    assertThat(Target.atMost("delay", 20, Target.once(20)).reached()).isTrue();
  }

  @Test
  void aMissedTargetSaysByHowMuch() {
    Target target = Target.atLeast("speed", 1.5, new Spread(1, 1.25, 2));

    assertThat(target.reached()).isFalse();
    assertThat(target.missed()).isEqualTo("speed: missed by 0.25");
    assertThat(target.line()).contains("speed", "1.00 - 2.00", ">= 1.50", "MISSED");
  }

  @Test
  void whatWasNotMeasuredIsMissed() {
    assertThat(Target.atLeast("speed", 1, Target.once(Double.NaN)).reached()).isFalse();
    assertThat(Target.atMost("delay", 1, Target.once(Double.NaN)).reached()).isFalse();
  }
}
