package io.streamshaper.examples;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** A load that goes on until it is stopped. */
final class BackgroundLoad implements AutoCloseable {
  private static final Duration ENDLESS = Duration.ofDays(1);

  private final Load load;
  private final CompletableFuture<Void> sender;

  BackgroundLoad(Load load) {
    this.load = load;
    sender =
        CompletableFuture.runAsync(
            () -> load.run(ENDLESS), task -> new Thread(task, "load").start());
  }

  long sent() {
    return load.sent();
  }

  /** All that was sent has been acknowledged when it returns. */
  void stop() {
    load.stop();
    sender.join();
  }

  @Override
  public void close() {
    stop();
    load.close();
  }
}
