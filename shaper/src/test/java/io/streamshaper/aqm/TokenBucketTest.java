package io.streamshaper.aqm;

import static java.util.concurrent.TimeUnit.HOURS;
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TokenBucketTest {
  @Test
  void itStartsFull() {
    TokenBucket bucket = new TokenBucket(10, 5);
    assertThat(spend(bucket, 0, 1)).isEqualTo(5);
    assertThat(bucket.hasToken()).isFalse();
  }

  @Test
  void itFlowsByElapsedTimeNotByTheNumberOfTicks() {
    TokenBucket bucket = new TokenBucket(1000, 60);
    spend(bucket, 0, 1);
    assertThat(spend(bucket, MILLISECONDS.toNanos(10), 1)).isEqualTo(10);
    assertThat(spend(bucket, MILLISECONDS.toNanos(35), 1)).isEqualTo(25);
    assertThat(spend(bucket, MILLISECONDS.toNanos(36), 1)).isEqualTo(1);
    assertThat(spend(bucket, MILLISECONDS.toNanos(90), 1)).isEqualTo(54);
  }

  @Test
  void aQuietGapSavesUpNoMoreThanTheBurst() {
    TokenBucket bucket = new TokenBucket(1000, 20);
    spend(bucket, 0, 1);
    assertThat(spend(bucket, HOURS.toNanos(1), 1)).isEqualTo(20);
  }

  @Test
  void fractionsOfATokenAreKept() {
    TokenBucket bucket = new TokenBucket(1.0 / 3, 1);
    spend(bucket, 0, 1);
    long left = 0;
    for (int second = 1; second <= 3000; second++) {
      left += spend(bucket, SECONDS.toNanos(second), 1);
    }
    assertThat(left).isEqualTo(1000);
  }

  @Test
  void tenTenthsAreAWholeToken() {
    TokenBucket bucket = new TokenBucket(10, 5);
    spend(bucket, 0, 1);
    for (int tenth = 1; tenth <= 10; tenth++) {
      assertThat(bucket.hasToken()).isFalse();
      bucket.refill(MILLISECONDS.toNanos(10L * tenth));
    }
    // As doubles they add up to less.
    assertThat(bucket.tokens()).isLessThan(1);
    assertThat(bucket.hasToken()).isTrue();
  }

  @Test
  void aClockThatStepsBackAddsNothing() {
    TokenBucket bucket = new TokenBucket(1000, 20);
    spend(bucket, MILLISECONDS.toNanos(100), 1);
    assertThat(spend(bucket, MILLISECONDS.toNanos(50), 1)).isZero();
    assertThat(spend(bucket, MILLISECONDS.toNanos(100), 1)).isZero();
    assertThat(spend(bucket, MILLISECONDS.toNanos(101), 1)).isEqualTo(1);
  }

  @Test
  void aCostAboveTheBurstLeavesADebtThatIsPaidFirst() {
    TokenBucket bucket = new TokenBucket(1000, 1);
    bucket.refill(0);
    bucket.take(50);
    assertThat(bucket.tokens()).isEqualTo(-49);
    bucket.refill(MILLISECONDS.toNanos(49));
    assertThat(bucket.hasToken()).isFalse();
    bucket.refill(MILLISECONDS.toNanos(50));
    assertThat(bucket.hasToken()).isTrue();
  }

  @Test
  void theRateHoldsInTheLongRunForAnyCost() {
    TokenBucket bucket = new TokenBucket(1000, 10);
    long left = 0;
    for (int millis = 0; millis <= 600_000; millis++) {
      left += spend(bucket, MILLISECONDS.toNanos(millis), 77);
    }
    assertThat(left).isCloseTo(600_000, within(77 + 10L));
  }

  @ParameterizedTest
  @ValueSource(longs = {Long.MIN_VALUE, -1, 0, Long.MAX_VALUE / 2})
  void anyInstantIsAnOrdinaryStart(long start) {
    TokenBucket bucket = new TokenBucket(1000, 5);
    assertThat(spend(bucket, start, 1)).isEqualTo(5);
    assertThat(spend(bucket, start + MILLISECONDS.toNanos(3), 1)).isEqualTo(3);
  }

  @ParameterizedTest
  @ValueSource(doubles = {Double.MAX_VALUE, 9.3e18, 1e-9})
  void noRateOverflows(double rate) {
    TokenBucket bucket = new TokenBucket(rate, Long.MAX_VALUE);
    bucket.refill(Long.MIN_VALUE);
    bucket.take(Long.MAX_VALUE);
    bucket.take(Long.MAX_VALUE);
    assertThat(bucket.hasToken()).isFalse();
    bucket.refill(Long.MAX_VALUE);
    assertThat(bucket.tokens()).isFinite().isLessThanOrEqualTo(Long.MAX_VALUE);
    assertThat(bucket.hasToken()).isEqualTo(rate > 1);
  }

  @Test
  void aRateThatIsNotAboveZeroIsRefused() {
    assertThatThrownBy(() -> new TokenBucket(0, 1)).hasMessage("rate must be above 0, was 0.0");
    assertThatThrownBy(() -> new TokenBucket(-2, 1)).hasMessage("rate must be above 0, was -2.0");
    assertThatThrownBy(() -> new TokenBucket(Double.NaN, 1))
        .hasMessage("rate must be above 0, was NaN");
  }

  @Test
  void aBurstBelowOneIsRefused() {
    assertThatThrownBy(() -> new TokenBucket(1, 0.5))
        .hasMessage("burst must be at least 1, was 0.5");
    assertThatThrownBy(() -> new TokenBucket(1, Double.NaN))
        .hasMessage("burst must be at least 1, was NaN");
  }

  /** Lets packets of this cost leave for as long as they may; the cost of all of them. */
  private static long spend(TokenBucket bucket, long nowNanos, long cost) {
    bucket.refill(nowNanos);
    long spent = 0;
    for (; bucket.hasToken(); spent += cost) {
      bucket.take(cost);
    }
    return spent;
  }
}
