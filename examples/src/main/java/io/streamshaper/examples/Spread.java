package io.streamshaper.examples;

import java.util.List;
import java.util.stream.IntStream;

/** The least, the middle and the most of what was measured several times. */
record Spread(double min, double median, double max) {

  static Spread of(List<Double> measured) {
    if (measured.isEmpty()) {
      throw new IllegalArgumentException("measured must be at least one, was none");
    }
    double[] sorted = measured.stream().mapToDouble(d -> d).sorted().toArray();
    int half = sorted.length / 2;
    double median = sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    return new Spread(sorted[0], median, sorted[sorted.length - 1]);
  }

  /** Of the ratios round by round: what disturbs a whole round cancels out. */
  static Spread ofRatios(List<Double> measured, List<Double> to) {
    if (measured.size() != to.size()) {
      throw new IllegalArgumentException(
          "rounds must be as many, were %d and %d".formatted(measured.size(), to.size()));
    }
    return of(IntStream.range(0, to.size()).mapToObj(i -> measured.get(i) / to.get(i)).toList());
  }
}
