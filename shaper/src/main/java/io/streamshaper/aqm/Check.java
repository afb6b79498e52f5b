package io.streamshaper.aqm;

/** Refuses arguments that make no sense, with the rule and the value. */
final class Check {
  private Check() {}

  static void atLeast(String name, long value, long least) {
    if (value < least) {
      throw new IllegalArgumentException(name + " must be at least " + least + ", was " + value);
    }
  }
}
