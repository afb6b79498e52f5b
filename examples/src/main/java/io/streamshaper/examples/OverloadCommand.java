package io.streamshaper.examples;

import com.fasterxml.jackson.annotation.JsonValue;
import io.streamshaper.ShaperOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.streams.StreamsConfig;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Measures what an overload by one hot key does to quiet ones, without and with the shaper. */
@Command(
    name = "overload",
    description = {
      "Measure delay and loss of quiet keys beside a hot one, without and with the shaper.",
      "The bottleneck takes 1,000 records/s; quiet keys send 5/s each, at most 250/s in all.",
      "With several tasks several keys are hot, so that each task has some.",
      "Exit status 0 only if every record of every run is accounted for."
    },
    mixinStandardHelpOptions = true)
final class OverloadCommand implements Callable<Integer> {
  private static final int CAPACITY = 1000;
  private static final long CALL_NANOS = Duration.ofSeconds(1).toNanos() / CAPACITY;
  private static final double QUIET_PER_SECOND = 5;
  private static final double ALL_QUIET_PER_SECOND = 250;
  private static final int WARM_UP_SECONDS = 10;
  private static final Duration DRAIN_LOAD = Duration.ofSeconds(4);
  private static final Duration DRAIN = Duration.ofSeconds(10);
  private static final String ROW = "%5s %6s %5s %-7s %6s %6s %6s %6s %5s %6s %5s";

  @Mixin private BenchOptions bench;

  @Option(
      names = "--load",
      split = ",",
      defaultValue = "0.5,1,2,5,10",
      description = "The hot key's, in multiples of the capacity (default: ${DEFAULT-VALUE}).")
  private List<Double> loads;

  @Option(
      names = "--quiet-keys",
      split = ",",
      defaultValue = "1,100,10000",
      description = "How many (default: ${DEFAULT-VALUE}).")
  private List<Integer> quietKeys;

  @Option(
      names = "--mode",
      split = ",",
      defaultValue = "rate,conserving",
      description = {
        "rate: a service that takes so many, and a shaper with that rate.",
        "conserving: blocking calls, and a shaper without a rate.",
        "(default: ${DEFAULT-VALUE})"
      })
  private List<Mode> modes;

  @Option(
      names = "--tasks",
      split = ",",
      defaultValue = "1,2",
      description = "Tasks, all on one thread (default: ${DEFAULT-VALUE}).")
  private List<Integer> tasks;

  @Option(
      names = "--guarantee",
      split = ",",
      defaultValue = "at_least_once",
      description = "Processing guarantees (default: ${DEFAULT-VALUE}).")
  private List<String> guarantees;

  @Option(
      names = "--seconds",
      defaultValue = "20",
      description = "How long each run takes (default: ${DEFAULT-VALUE}).")
  private int seconds;

  /** What the bottleneck is. */
  enum Mode {
    RATE,
    CONSERVING;

    @Override
    @JsonValue
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }

    Step.Call call() {
      return this == RATE ? Step.Call.limited(CAPACITY) : Step.Call.blocking(CALL_NANOS);
    }

    ShaperOptions options(int tasks) {
      return this == RATE
          ? ShaperOptions.builder().rate((double) CAPACITY / tasks).build()
          : ShaperOptions.defaults();
    }
  }

  /**
   * One run. Delays in ms, once it had settled, but for the largest of all; busy is the share of
   * the capacity in use.
   */
  record Row(
      double load,
      int quietKeys,
      int tasks,
      boolean shaped,
      double p50,
      double p99,
      double p999,
      double max,
      long quietLost,
      double hotPerSecond,
      double busy,
      double worstSecondPercent) {}

  /** All runs of one mode and guarantee. */
  record Table(Mode mode, String guarantee, List<Row> rows, double drain, List<Target> targets) {}

  @Override
  public Integer call() throws Exception {
    for (double load : loads) {
      if (!(load >= 0.1 && load <= 100)) {
        throw bench.refusal("--load", "between 0.1 and 100", load);
      }
    }
    quietKeys.forEach(keys -> bench.checkRange("--quiet-keys", keys, 1, 100_000));
    tasks.forEach(count -> bench.checkRange("--tasks", count, 1, 16));
    bench.checkRange("--seconds", seconds, 2, 3600);
    bench.checkGuarantees(guarantees);
    return bench.run("overload", this::measure);
  }

  private List<Table> measure(Admin admin, String servers, Path stateDir) throws Exception {
    List<Table> tables = new ArrayList<>();
    bench.progress("warming up");
    try (DemoRun warmUp =
        new DemoRun(
            admin, servers, Mode.CONSERVING.call(), ShaperOptions.defaults(), rates(5, 50))) {
      warmUp.run(Math.min(WARM_UP_SECONDS, seconds), second -> {});
    }
    for (Mode mode : modes) {
      for (String guarantee : guarantees) {
        tables.add(table(admin, servers, mode, guarantee));
      }
    }
    return tables;
  }

  private Table table(Admin admin, String servers, Mode mode, String guarantee) throws Exception {
    bench.say("%s, %s, %d s each", mode, guarantee, seconds);
    bench.say(ROW, "hot", "quiet", "", "", "quiet", "delay", "p99.9", "max", "quiet", "hot", "");
    bench.say(ROW, "load", "keys", "tasks", "shaper", "p50", "p99", "", "ms", "lost", "/s", "busy");
    List<Row> rows = new ArrayList<>();
    for (int count : tasks) {
      for (int keys : quietKeys) {
        for (double load : loads) {
          for (boolean shaped : new boolean[] {false, true}) {
            Row row = run(admin, servers, mode, guarantee, load, keys, count, shaped);
            rows.add(row);
            print(row);
          }
        }
      }
    }
    double drain = mode == Mode.CONSERVING ? drain(admin, servers, guarantee) : Double.NaN;
    List<Target> targets = targets(mode, guarantee, rows, drain);
    bench.say(targets);
    bench.say("");
    return new Table(mode, guarantee, rows, drain, targets);
  }

  private Row run(
      Admin admin,
      String servers,
      Mode mode,
      String guarantee,
      double load,
      int keys,
      int count,
      boolean shaped)
      throws Exception {
    String label = "%s %.1fx, %,d keys, %d tasks".formatted(mode, load, keys, count);
    List<long[]> samples = new ArrayList<>();
    try (DemoRun run =
        new DemoRun(
            admin,
            servers,
            mode.call(),
            shaped ? mode.options(count) : null,
            rates(load, keys),
            Map.of(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee),
            count)) {
      DemoRun.Result result =
          run.run(
              seconds,
              second -> {
                samples.add(new long[] {System.nanoTime(), run.forwarded()});
                bench.progress(
                    "%s, %s: %d/%d s", label, shaped ? "with" : "without", second, seconds);
              });
      if (!result.violations().isEmpty()) {
        throw new IllegalStateException(label + " does not add up: " + result.violations().get(0));
      }
      Histogram delay = result.settledQuietDelayMs();
      return new Row(
          load,
          keys,
          count,
          shaped,
          delay.getValueAtPercentile(50),
          delay.getValueAtPercentile(99),
          delay.getValueAtPercentile(99.9),
          result.quietDelayMs().getMaxValue(),
          result.quiet().dropped(),
          (double) result.hot().forwarded() / seconds,
          mode == Mode.RATE ? result.perSecond() / CAPACITY : result.busy(),
          worstSecondPercent(samples.subList(samples.size() / 2, samples.size())));
    }
  }

  /** How far from the capacity the worst second is. */
  static double worstSecondPercent(List<long[]> samples) {
    double worst = 0;
    for (int i = 1; i < samples.size(); i++) {
      double nanos = samples.get(i)[0] - samples.get(i - 1)[0];
      double perSecond = (samples.get(i)[1] - samples.get(i - 1)[1]) / nanos * 1e9;
      worst = Math.max(worst, Math.abs(perSecond / CAPACITY - 1) * 100);
    }
    return worst;
  }

  /** Without drops: the interval is longer than the run. */
  private double drain(Admin admin, String servers, String guarantee) throws Exception {
    bench.progress("draining while input is idle");
    ShaperOptions patient = ShaperOptions.builder().interval(Duration.ofDays(1)).build();
    Map<String, ?> config = Application.config(guarantee);
    try (DemoRun run =
        new DemoRun(admin, servers, Mode.CONSERVING.call(), patient, rates(5, 50), config, 1)) {
      return run.drain(DRAIN_LOAD, DRAIN);
    }
  }

  private static DemoRun.Rates rates(double load, int keys) {
    double each = Math.min(QUIET_PER_SECOND, ALL_QUIET_PER_SECOND / keys);
    return new DemoRun.Rates(load * CAPACITY, keys, each);
  }

  static List<Target> targets(Mode mode, String guarantee, List<Row> rows, double drain) {
    List<Target> targets = new ArrayList<>();
    List<Row> shaped = rows.stream().filter(Row::shaped).toList();
    boolean exactlyOnce = guarantee.equals(StreamsConfig.EXACTLY_ONCE_V2);
    for (Row with : shaped) {
      rows.stream()
          .filter(row -> !row.shaped && row.load == 5 && with.load == 5)
          .filter(row -> row.quietKeys == with.quietKeys && row.tasks == with.tasks)
          .map(row -> Target.once(row.p99 / with.p99))
          .map(
              ratio ->
                  Target.atLeast(
                      "p99 without/with, %,d keys, %d tasks".formatted(with.quietKeys, with.tasks),
                      17,
                      ratio))
          .forEach(targets::add);
    }
    targets.add(
        Target.atMost(
            "worst quiet p99, ms", mode == Mode.RATE ? 20 : 100, worst(shaped, Row::p99)));
    targets.add(Target.atMost("quiet records lost", 0, worst(shaped, Row::quietLost)));
    Predicate<Row> busyOne = row -> row.load >= 2 && row.tasks == 1;
    List<Row> busy = shaped.stream().filter(busyOne).toList();
    if (!busy.isEmpty() && mode == Mode.RATE) {
      targets.add(
          Target.atMost("worst second off the rate, %", 1.5, worst(busy, Row::worstSecondPercent)));
    } else if (!busy.isEmpty()) {
      Spread least = worst(busy, row -> -100 * row.busy);
      targets.add(
          Target.atLeast("least busy, %", exactlyOnce ? 92 : 96, Target.once(-least.median())));
    }
    if (mode == Mode.CONSERVING) {
      targets.add(Target.atLeast("busy while idle input drains, %", 90, Target.once(100 * drain)));
    }
    return targets;
  }

  private static Spread worst(List<Row> rows, ToDoubleFunction<Row> what) {
    return Target.once(rows.stream().mapToDouble(what).max().orElse(0));
  }

  private void print(Row row) {
    bench.say(
        ROW,
        "%.1f".formatted(row.load),
        "%,d".formatted(row.quietKeys),
        row.tasks,
        row.shaped ? "with" : "without",
        "%,.0f".formatted(row.p50),
        "%,.0f".formatted(row.p99),
        "%,.0f".formatted(row.p999),
        "%,.0f".formatted(row.max),
        row.quietLost,
        "%,.0f".formatted(row.hotPerSecond),
        "%.1f%%".formatted(100 * row.busy));
  }
}
