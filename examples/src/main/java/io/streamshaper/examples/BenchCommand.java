package io.streamshaper.examples;

import io.streamshaper.examples.Throughput.Measured;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Measures what the shaper costs, against topologies without one. */
@Command(
    name = "bench",
    description = {
      "Measure throughput, CPU and changelog of a topology with and without the shaper.",
      "All variants run in this JVM, in turn, on a real broker in another one.",
      "Exit status 0 only if every record of every run is accounted for."
    },
    mixinStandardHelpOptions = true,
    subcommands = {OverloadCommand.class, OutageCommand.class})
final class BenchCommand implements Callable<Integer> {
  private static final String ROW = "%-27s %26s %8s %10s %5s";

  @Mixin private BenchOptions bench;

  @Option(
      names = "--records",
      defaultValue = "500000",
      description = "Records of each run (default: ${DEFAULT-VALUE}).")
  private long records;

  @Option(
      names = "--rounds",
      defaultValue = "5",
      description = "Measured runs of each variant (default: ${DEFAULT-VALUE}).")
  private int rounds;

  @Option(
      names = "--warm-up",
      defaultValue = "1",
      description = "Rounds before the first measured one (default: ${DEFAULT-VALUE}).")
  private int warmUps;

  @Option(
      names = "--value-bytes",
      split = ",",
      defaultValue = "100,1024",
      description = "Sizes of the values (default: ${DEFAULT-VALUE}).")
  private List<Integer> valueBytes;

  @Option(
      names = "--guarantee",
      split = ",",
      defaultValue = "at_least_once,exactly_once_v2",
      description = "Processing guarantees (default: ${DEFAULT-VALUE}).")
  private List<String> guarantees;

  @Option(
      names = "--commit-ms",
      defaultValue = "100",
      description = "Commit interval of all variants (default: ${DEFAULT-VALUE}).")
  private int commitMs;

  @Option(
      names = "--variants",
      defaultValue = "abcdefg",
      description = "Which ones, by their letters (default: ${DEFAULT-VALUE}).")
  private String letters;

  @Override
  public Integer call() throws Exception {
    bench.checkRange("--records", records, 10_000, 100_000_000);
    bench.checkRange("--rounds", rounds, 1, 1000);
    bench.checkRange("--warm-up", warmUps, 0, 1000);
    valueBytes.forEach(bytes -> bench.checkRange("--value-bytes", bytes, Long.BYTES, 500_000));
    bench.checkRange("--commit-ms", commitMs, 1, 60_000);
    bench.checkGuarantees(guarantees);
    if (!letters.matches("[abcdefg]+")) {
      throw bench.refusal("--variants", "some of abcdefg", letters);
    }
    return bench.run("throughput", this::measure);
  }

  private List<Throughput.Result> measure(Admin admin, String servers, Path stateDir)
      throws Exception {
    List<Variant> variants =
        Stream.of(Variant.values()).filter(v -> letters.contains(v.letter())).toList();
    List<Throughput.Result> results = new ArrayList<>();
    for (String guarantee : guarantees) {
      for (int bytes : valueBytes) {
        bench.progress("writing %,d records of %,d bytes", records, bytes);
        var setting = new Throughput.Setting(guarantee, bytes, records, commitMs, variants);
        try (Throughput throughput = new Throughput(admin, servers, stateDir, setting)) {
          Throughput.Result result = throughput.run(warmUps, rounds, this::progress);
          print(result);
          results.add(result);
        }
      }
    }
    return results;
  }

  private void progress(int round, Variant variant) {
    if (round > 0) {
      bench.progress("round %d of %d: %s", round, rounds, variant.label());
    } else {
      bench.progress("warming up: %s", variant.label());
    }
  }

  private void print(Throughput.Result result) {
    Throughput.Setting setting = result.setting();
    bench.say(
        "%s, %,d-byte values, %,d records, %d rounds",
        setting.guarantee(), setting.valueBytes(), setting.records(), rounds);
    bench.say(ROW, "", "thousand records a second", "CPU s a", "changelog", "peak");
    bench.say(ROW, "", "min    median       max", "million", "a thousand", "MiB");
    result.rounds().forEach(this::print);
    bench.say(result.targets());
    bench.say("");
  }

  private void print(Variant variant, List<Measured> runs) {
    Spread speed = Spread.of(Throughput.list(runs, run -> run.perSecond() / 1000));
    bench.say(
        ROW,
        variant.letter() + " " + variant.label(),
        "%.1f %9.1f %9.1f".formatted(speed.min(), speed.median(), speed.max()),
        median("%.2f", runs, Measured::cpuSecondsPerMillion),
        median("%.1f", runs, Measured::changelogPerThousand),
        median("%.0f", runs, Measured::peakHeapMib));
    long dropped = runs.stream().mapToLong(Measured::dropped).sum();
    if (dropped > 0) {
      bench.say("  dropped in all rounds: %,d", dropped);
    }
  }

  private static String median(
      String format, List<Measured> runs, Function<Measured, Double> what) {
    return format.formatted(Spread.of(Throughput.list(runs, what)).median());
  }
}
