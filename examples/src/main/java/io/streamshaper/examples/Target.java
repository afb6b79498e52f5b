package io.streamshaper.examples;

import com.fasterxml.jackson.annotation.JsonProperty;

/** What a measurement must reach, and whether it did. Higher is better, or lower. */
record Target(String name, Spread measured, double bound, boolean higher) {

  static Target atLeast(String name, double bound, Spread measured) {
    return new Target(name, measured, bound, true);
  }

  static Target atMost(String name, double bound, Spread measured) {
    return new Target(name, measured, bound, false);
  }

  /** Of something that was measured once. */
  static Spread once(double measured) {
    return new Spread(measured, measured, measured);
  }

  @JsonProperty
  boolean reached() {
    return higher ? measured.median() >= bound : measured.median() <= bound;
  }

  /** A line of a table. */
  String line() {
    return "%-36s %8s %17s  %2s %-5s %s"
        .formatted(
            name,
            number(measured.median()),
            measured.min() == measured.max()
                ? ""
                : number(measured.min()) + " - " + number(measured.max()),
            higher ? ">=" : "<=",
            number(bound),
            reached() ? "ok" : "MISSED");
  }

  /** By how much it was missed; empty if it was reached. */
  String missed() {
    return reached()
        ? ""
        : "%s: missed by %s".formatted(name, number(Math.abs(measured.median() - bound)));
  }

  private static String number(double value) {
    return Math.abs(value) < 100 ? "%.2f".formatted(value) : "%.0f".formatted(value);
  }
}
