package io.streamshaper.aqm;

/**
 * The shaper's own bottleneck: tokens, in cost units, flow in at a rate up to a burst; what leaves
 * takes its cost out. A cost that exceeds what is there leaves a debt that is paid before anything
 * else may leave, so the rate holds for any cost. Starts full. Not thread-safe.
 */
public final class TokenBucket {
  private static final double NANOS_PER_SECOND = 1e9;

  /** What sums of fractions may lack to a whole token. */
  private static final double ROUNDING = 1e-6;

  private final double tokensPerNano;
  private final double burst;
  private double tokens;
  private boolean started;
  private long lastNanos;

  /**
   * @param ratePerSecond cost units a second, above 0
   * @param burst most tokens that can be saved up, at least 1
   * @throws IllegalArgumentException if a parameter is out of range
   */
  public TokenBucket(double ratePerSecond, double burst) {
    if (!(ratePerSecond > 0)) {
      throw new IllegalArgumentException("rate must be above 0, was " + ratePerSecond);
    }
    if (!(burst >= 1)) {
      throw new IllegalArgumentException("burst must be at least 1, was " + burst);
    }
    this.tokensPerNano = ratePerSecond / NANOS_PER_SECOND;
    this.burst = burst;
    this.tokens = burst;
  }

  /** Adds what has flowed in since the last call; a clock that stepped back adds nothing. */
  public void refill(long nowNanos) {
    if (!started || nowNanos > lastNanos) {
      tokens = tokensAt(nowNanos);
      lastNanos = nowNanos;
      started = true;
    }
  }

  /** Whether something may leave now: there is a token, and no debt. */
  public boolean hasToken() {
    return tokens >= 1 - ROUNDING;
  }

  /** Whether something could leave at that time; changes nothing. */
  public boolean hasTokenAt(long nowNanos) {
    return tokensAt(nowNanos) >= 1 - ROUNDING;
  }

  /** Takes out the cost of what has left. */
  public void take(long cost) {
    tokens -= cost;
  }

  /** What may leave at once, in cost units; negative while in debt. */
  public double tokens() {
    return tokens;
  }

  private double tokensAt(long nowNanos) {
    if (!started || nowNanos <= lastNanos) {
      return tokens;
    }
    long elapsedNanos = nowNanos - lastNanos;
    double inflow = (elapsedNanos < 0 ? Long.MAX_VALUE : elapsedNanos) * tokensPerNano;
    return Math.min(burst, tokens + inflow);
  }
}
