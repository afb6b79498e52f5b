package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.examples.OverloadCommand.Mode;
import io.streamshaper.examples.OverloadCommand.Row;
import io.streamshaper.examples.Throughput.Measured;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the benches make of what they measure, and of what they are told. */
class BenchTest {

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--records=9|--records must be between 10000 and 100000000, was 9",
        "--rounds=0|--rounds must be between 1 and 1000, was 0",
        "--warm-up=-1|--warm-up must be between 0 and 1000, was -1",
        "--value-bytes=100,7|--value-bytes must be between 8 and 500000, was 7",
        "--commit-ms=0|--commit-ms must be between 1 and 60000, was 0",
        "--guarantee=never|--guarantee must be at_least_once or exactly_once_v2, was never",
        "--variants=abx|--variants must be some of abcdefg, was abx",
        "--json=/nowhere/file|--json must be a file in a folder that can be written to, was",
        "--bootstrap-server=nonsense|--bootstrap-server must be HOST:PORT of a broker, was nonsense",
        "overload --load=0|--load must be between 0.1 and 100, was 0.0",
        "overload --quiet-keys=0|--quiet-keys must be between 1 and 100000, was 0",
        "overload --tasks=17|--tasks must be between 1 and 16, was 17",
        "overload --seconds=1|--seconds must be between 2 and 3600, was 1",
        "overload --mode=fast|'--mode'",
        "outage --down-seconds=0|--down-seconds must be between 1 and 86400, was 0",
        "outage --per-second=9|--per-second must be between 10 and 100000, was 9",
        "outage --max-age-seconds=3601|--max-age-seconds must be between 1 and 3600, was 3601",
        "outage --step-micros=-1|--step-micros must be between 0 and 1000000, was -1",
        "outage --rounds=0|--rounds must be between 1 and 100, was 0",
        "outage --timeout-seconds=0|--timeout-seconds must be between 1 and 3600, was 0",
        "nonsense|nonsense",
      })
  void badInputIsOneLineAndStatus2(String line, String message) {
    StringWriter err = new StringWriter();

    int status =
        Main.commandLine()
            .setErr(new PrintWriter(err, true))
            .execute(("bench " + line).split(" ", -1));

    assertThat(err.toString()).hasLineCount(1).contains(message);
    assertThat(status).isEqualTo(2);
  }

  @Test
  void throughputTargetsCompareRoundByRound() {
    Map<Variant, List<Measured>> rounds = new HashMap<>();
    for (Variant variant : Variant.values()) {
      rounds.put(variant, List.of(measured(100, 2), measured(200, 2)));
    }
    rounds.put(Variant.QUEUED, List.of(measured(130, 3), measured(300, 3)));

    Map<String, Double> medians = new HashMap<>();
    Throughput.targets(rounds).forEach(t -> medians.put(t.name(), t.measured().median()));

    assertThat(medians)
        .hasSize(7)
        .containsEntry("b/a throughput", 1.0)
        .containsEntry("b/a CPU", 1.0)
        .containsEntry("c/e throughput", 1.4)
        .containsEntry("d/e throughput", 1.0);
  }

  @Test
  void throughputTargetsOfVariantsThatDidNotRunAreLeftOut() {
    Map<Variant, List<Measured>> rounds =
        Map.of(Variant.QUEUED, List.of(measured(3, 1)), Variant.STORE, List.of(measured(2, 1)));

    assertThat(Throughput.targets(rounds))
        .extracting(Target::name)
        .containsExactly("c/e throughput");
  }

  @Test
  void overloadTargetsTakeTheWorstRun() {
    List<Row> rows = List.of(row(5, false, 1000, 0), row(5, true, 10, 0), row(10, true, 30, 2));

    Map<String, Target> targets = new HashMap<>();
    OverloadCommand.targets(Mode.RATE, "at_least_once", rows, Double.NaN)
        .forEach(target -> targets.put(target.name(), target));

    assertThat(targets.get("p99 without/with, 100 keys, 1 tasks").measured().median())
        .isEqualTo(100);
    assertThat(targets.get("worst quiet p99, ms").measured().median()).isEqualTo(30);
    assertThat(targets.get("quiet records lost").reached()).isFalse();
  }

  @Test
  void theWorstSecondCountsWhateverItsLength() {
    List<long[]> samples =
        List.of(
            new long[] {0, 0},
            new long[] {1_000_000_000L, 1000},
            new long[] {3_000_000_000L, 2900}, // 950 a second
            new long[] {3_500_000_000L, 3410}); // 1,020 a second

    assertThat(OverloadCommand.worstSecondPercent(samples)).isBetween(4.999, 5.001);
  }

  @Test
  void aTallyNoticesWhatComesTwiceAndWhatOvertakes() {
    Tally tally = new Tally(null, null, key -> "");
    Map<String, Long> last = new HashMap<>();
    tally.add("one", 0, last);
    tally.add("two", 1, last);
    tally.add("one", 3, last);
    assertThat(tally.violations()).isEmpty();

    tally.add("one", 2, last);
    tally.add("two", 3, last);

    assertThat(tally.violations())
        .containsExactly(
            "records that came out twice must be none, were 1",
            "records that one of their key overtook must be none, were 1");
  }

  private static Measured measured(double perSecond, double cpu) {
    return new Measured(perSecond, cpu, 0, 0, 0);
  }

  private static Row row(double load, boolean shaped, double p99, long lost) {
    return new Row(load, 100, 1, shaped, 1, p99, p99, p99, lost, 0, 1, 0);
  }
}
