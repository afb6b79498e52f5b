package io.streamshaper.examples.page;

import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.distribution.CountAtBucket;
import io.micrometer.core.instrument.distribution.HistogramSnapshot;
import java.util.Collection;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * How many records took at most so long, in all of several timers: a bucket's upper bound in
 * milliseconds, the last one without, and the records up to it.
 */
record Buckets(NavigableMap<Double, Double> counts) {
  static final Buckets NONE = new Buckets(new TreeMap<>());

  /** Since the timers began; they must have buckets that only grow, as Prometheus' have. */
  static Buckets of(Collection<Timer> timers) {
    NavigableMap<Double, Double> sum = new TreeMap<>();
    for (Timer timer : timers) {
      HistogramSnapshot snapshot = timer.takeSnapshot();
      for (CountAtBucket bucket : snapshot.histogramCounts()) {
        sum.merge(bucket.bucket(TimeUnit.MILLISECONDS), bucket.count(), Double::sum);
      }
      sum.merge(Double.POSITIVE_INFINITY, (double) snapshot.count(), Double::sum);
    }
    return new Buckets(sum);
  }

  /** What has come since; nothing is known if a timer went away meanwhile, with its task. */
  Snapshot.Delay since(Buckets before) {
    NavigableMap<Double, Double> fresh = new TreeMap<>();
    counts.forEach(
        (bound, count) -> fresh.put(bound, count - before.counts.getOrDefault(bound, 0.0)));
    double total = fresh.isEmpty() ? 0 : fresh.lastEntry().getValue();
    return total <= 0 || fresh.values().stream().anyMatch(count -> count < 0 || count > total)
        ? new Snapshot.Delay(null, null, null)
        : new Snapshot.Delay(
            reached(fresh, 0.5 * total), reached(fresh, 0.99 * total), reached(fresh, total));
  }

  /** Within a bucket, records are taken to be spread evenly; beyond the last bound, to be at it. */
  private static double reached(NavigableMap<Double, Double> counts, double wanted) {
    double lowerBound = 0;
    double below = 0;
    for (Map.Entry<Double, Double> bucket : counts.entrySet()) {
      double upTo = bucket.getValue();
      if (bucket.getKey().isInfinite()) {
        break;
      }
      if (upTo >= wanted) {
        double share = (wanted - below) / (upTo - below);
        return lowerBound + share * (bucket.getKey() - lowerBound);
      }
      lowerBound = bucket.getKey();
      below = upTo;
    }
    return lowerBound;
  }
}
