package io.streamshaper.examples;

import io.streamshaper.ShaperOptions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.admin.Admin;

/** One application under load: started, loaded, stopped, checked and removed. */
final class DemoRun implements AutoCloseable {
  /** A topology that has just started is slower; that counts in the table, not in the rates. */
  private static final int SETTLING_SECONDS = 10;

  /** So many that each of several tasks gets some. */
  private static final int HOT_KEYS_PER_TASK = 4;

  private final Step step;
  private final Load load;
  private final Application application;
  private final ShaperOptions options;

  /** What is sent: records a second of what is hot and of each quiet key. */
  record Rates(double hotPerSecond, int quietKeys, double quietPerSecond) {}

  /** What a run showed; rate, busy share and one of the delays once it had settled. */
  record Result(
      Ledger.Account hot,
      Ledger.Account quiet,
      Histogram hotDelayMs,
      Histogram quietDelayMs,
      Histogram settledQuietDelayMs,
      double perSecond,
      double busy,
      List<String> violations) {}

  /**
   * @param options null: without the shaper
   */
  DemoRun(Admin admin, String bootstrapServers, Step.Call call, ShaperOptions options, Rates rates)
      throws Exception {
    this(admin, bootstrapServers, call, options, rates, Map.of(), 1);
  }

  /**
   * @param options null: without the shaper
   * @param config over what suits an example
   * @param tasks all of one thread
   */
  DemoRun(
      Admin admin,
      String bootstrapServers,
      Step.Call call,
      ShaperOptions options,
      Rates rates,
      Map<String, ?> config,
      int tasks)
      throws Exception {
    this.options = options;
    step = new Step(call);
    application = new Application(admin, bootstrapServers, config, step::processor, tasks);
    load =
        new Load(
            bootstrapServers,
            application.in(),
            tasks == 1 ? 1 : HOT_KEYS_PER_TASK * tasks,
            rates.hotPerSecond,
            rates.quietKeys,
            rates.quietPerSecond);
  }

  /** Records sent so far. */
  long sent() {
    return load.sent();
  }

  /** Records that the step has taken so far. */
  long forwarded() {
    return step.calls();
  }

  /**
   * Runs under load.
   *
   * @param eachSecond is given the seconds that have passed
   */
  Result run(int seconds, IntConsumer eachSecond) throws Exception {
    application.start(options);
    Thread sender = new Thread(() -> load.run(Duration.ofSeconds(seconds)), "load");
    sender.start();
    int settling = Math.min(SETTLING_SECONDS, seconds / 2);
    long start = System.nanoTime();
    watch(start, 1, settling, eachSecond);
    Histogram quietDelayMs = step.delayMs(false);
    long callsBefore = step.calls();
    long busyBefore = step.busyNanos();
    long before = System.nanoTime();
    watch(start, settling + 1, seconds, eachSecond);
    double nanos = System.nanoTime() - before;
    double perSecond = (step.calls() - callsBefore) / nanos * TimeUnit.SECONDS.toNanos(1);
    double busy = (step.busyNanos() - busyBefore) / nanos;
    sender.join();
    application.stop();
    Ledger ledger = application.ledger();
    Histogram settledQuietDelayMs = step.delayMs(false);
    quietDelayMs.add(settledQuietDelayMs);
    return new Result(
        ledger.total(Load::isHot),
        ledger.total(key -> !Load.isHot(key)),
        step.delayMs(true),
        quietDelayMs,
        settledQuietDelayMs,
        perSecond,
        busy,
        ledger.violations());
  }

  /**
   * How busy the step is while a backlog drains and nothing comes in, from 0 to 1. The options must
   * be such that nothing is dropped.
   */
  double drain(Duration loaded, Duration measured) throws Exception {
    application.start(options);
    load.run(loaded);
    while (application.committed() < load.sent()) {
      TimeUnit.MILLISECONDS.sleep(50);
    }
    long busyBefore = step.busyNanos();
    long before = System.nanoTime();
    TimeUnit.NANOSECONDS.sleep(measured.toNanos());
    double busy = (step.busyNanos() - busyBefore) / (double) (System.nanoTime() - before);
    if (step.calls() == load.sent()) {
      throw new IllegalStateException("backlog must last for " + measured + ", was drained");
    }
    application.stop();
    return busy;
  }

  /** Removes all that the run has made. */
  @Override
  public void close() {
    load.stop();
    load.close();
    application.close();
  }

  /** As {@link #close}, where the broker and this JVM are about to end. */
  void abandon() {
    load.stop();
    application.deleteStateDir();
  }

  private static void watch(long start, int from, int to, IntConsumer eachSecond)
      throws InterruptedException {
    for (int second = from; second <= to; second++) {
      long left = start + TimeUnit.SECONDS.toNanos(second) - System.nanoTime();
      TimeUnit.NANOSECONDS.sleep(left);
      eachSecond.accept(second);
    }
  }
}
