package io.streamshaper.examples;

import io.streamshaper.examples.Outage.Measured;
import io.streamshaper.examples.Outage.Remedy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Measures how soon an application is useful again after an outage. */
@Command(
    name = "outage",
    description = {
      "Measure how soon fresh records come through after an outage, live traffic going on.",
      "A tenth of the traffic is 50 quiet keys', the rest a hot key's.",
      "Exit status 0 only if every record of every run is accounted for."
    },
    mixinStandardHelpOptions = true)
final class OutageCommand implements Callable<Integer> {
  private static final int QUIET_KEYS = 50;
  private static final String ROW = "%-26s %14s %14s %12s %10s";

  @Mixin private BenchOptions bench;

  @Option(
      names = "--down-seconds",
      defaultValue = "3600",
      description = "How long it was down (default: ${DEFAULT-VALUE}).")
  private int downSeconds;

  @Option(
      names = "--per-second",
      defaultValue = "500",
      description = "Records a second, then and now (default: ${DEFAULT-VALUE}).")
  private int perSecond;

  @Option(
      names = "--max-age-seconds",
      defaultValue = "60",
      description = "Age past which a record is worthless (default: ${DEFAULT-VALUE}).")
  private int maxAgeSeconds;

  @Option(
      names = "--step-micros",
      defaultValue = "1000",
      description = "What each forwarded record costs (default: ${DEFAULT-VALUE}).")
  private int stepMicros;

  @Option(
      names = "--rounds",
      defaultValue = "3",
      description = "Starts of each topology (default: ${DEFAULT-VALUE}).")
  private int rounds;

  @Option(
      names = "--timeout-seconds",
      defaultValue = "30",
      description = "When to give up a start (default: ${DEFAULT-VALUE}).")
  private int timeoutSeconds;

  /** All that was measured. */
  record Result(
      long backlog, int rounds, Map<Remedy, List<Measured>> starts, List<Target> targets) {}

  @Override
  public Integer call() throws Exception {
    bench.checkRange("--down-seconds", downSeconds, 1, 86_400);
    bench.checkRange("--per-second", perSecond, 10, 100_000);
    bench.checkRange("--max-age-seconds", maxAgeSeconds, 1, downSeconds);
    bench.checkRange("--step-micros", stepMicros, 0, 1_000_000);
    bench.checkRange("--rounds", rounds, 1, 100);
    bench.checkRange("--timeout-seconds", timeoutSeconds, 1, 3600);
    return bench.run("outage", this::measure);
  }

  private Result measure(Admin admin, String servers, Path stateDir) throws Exception {
    String id = "bench-%08x".formatted(System.nanoTime());
    String in = id + "-in";
    Application.createTopics(admin, List.of(in), 1);
    double quietPerSecond = perSecond / 10.0 / QUIET_KEYS;
    try (Load load = new Load(servers, in, 0.9 * perSecond, QUIET_KEYS, quietPerSecond)) {
      bench.progress("writing what has piled up");
      load.catchUp(Duration.ofSeconds(downSeconds));
      long backlog = load.sent();
      Thread live = new Thread(() -> load.run(Duration.ofDays(1)), "live-load");
      live.start();
      try {
        Map<Remedy, List<Measured>> starts = starts(admin, servers, stateDir, id, in);
        Result result = new Result(backlog, rounds, starts, targets(starts));
        print(result);
        return result;
      } finally {
        load.stop();
        live.join();
      }
    } finally {
      BenchRun.deleteTopics(admin, List.of(in));
    }
  }

  private Map<Remedy, List<Measured>> starts(
      Admin admin, String servers, Path stateDir, String id, String in) throws Exception {
    Map<Remedy, List<Measured>> starts = new EnumMap<>(Remedy.class);
    List<Remedy> turn = new ArrayList<>(List.of(Remedy.values()));
    // The first round warms up; to wait for what comes too late anyway warms up nothing.
    for (int round = 0; round <= rounds; round++) {
      for (Remedy remedy : turn) {
        if (round == 0 && remedy == Remedy.NONE) {
          continue;
        }
        bench.progress("round %d of %d: %s", round, rounds, remedy.label());
        Measured measured =
            Outage.run(
                admin,
                servers,
                stateDir,
                "%s-%d-%s".formatted(id, round, remedy),
                in,
                remedy,
                Duration.ofSeconds(maxAgeSeconds),
                QUIET_KEYS,
                Step.Call.blocking(stepMicros * 1000L),
                Duration.ofSeconds(timeoutSeconds));
        if (round > 0) {
          starts.computeIfAbsent(remedy, first -> new ArrayList<>()).add(measured);
        }
      }
      Collections.reverse(turn);
    }
    return starts;
  }

  static List<Target> targets(Map<Remedy, List<Measured>> starts) {
    return List.of(
        firstFresh(starts, "discarding: shaper/reader", Remedy.SHAPER_DISCARD, Remedy.DISCARD),
        firstFresh(starts, "to a topic: shaper/reader", Remedy.SHAPER, Remedy.DIVERT));
  }

  private static Target firstFresh(
      Map<Remedy, List<Measured>> starts, String name, Remedy remedy, Remedy to) {
    return Target.atMost(
        name,
        1.1,
        Spread.ofRatios(
            starts.get(remedy).stream().map(Measured::firstFreshSeconds).toList(),
            starts.get(to).stream().map(Measured::firstFreshSeconds).toList()));
  }

  private void print(Result result) {
    bench.say(
        "down for %,d s at %,d records/s: %,d records piled up",
        downSeconds, perSecond, result.backlog);
    bench.say("max age %,d s, step %,d us a record, %d rounds", maxAgeSeconds, stepMicros, rounds);
    bench.say(ROW, "medians", "seconds to the", "to every quiet", "old records", "records");
    bench.say(ROW, "", "first fresh", "key fresh", "dropped/s", "forwarded");
    result.starts.forEach(
        (remedy, measured) ->
            bench.say(
                ROW,
                remedy.label(),
                inTime(measured, Measured::firstFreshSeconds),
                inTime(measured, Measured::everyKeySeconds),
                number(measured, Measured::stalePerSecond),
                number(measured, start -> (double) start.balance().forwarded())));
    bench.say(result.targets);
  }

  private String inTime(List<Measured> measured, Function<Measured, Double> what) {
    double seconds = median(measured, what);
    return Double.isNaN(seconds) ? "over " + timeoutSeconds : "%.2f".formatted(seconds);
  }

  private static String number(List<Measured> measured, Function<Measured, Double> what) {
    double number = median(measured, what);
    return Double.isNaN(number) ? "-" : "%,.0f".formatted(number);
  }

  private static double median(List<Measured> measured, Function<Measured, Double> what) {
    return Spread.of(measured.stream().map(what).toList()).median();
  }
}
