package io.streamshaper;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.Tuple;
import org.apache.kafka.streams.StreamsConfig;

class ShaperLawTest {
  private static final String[] KEYS = {null, "", "a", "b", "c"};

  /** Pipes records of a key, of some age, then lets time pass. */
  record Step(int key, int records, long ageMs, boolean droppable, long advanceMs) {}

  @Property(tries = 200, shrinking = ShrinkingMode.BOUNDED)
  void nothingIsLostNorReorderedWhateverTheOptionsAndThePace(
      @ForAll("options") ShaperOptions options,
      @ForAll("programs") List<Step> program,
      @ForAll boolean exactlyOnce) {
    Map<String, Object> config =
        Map.of(
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
            exactlyOnce ? StreamsConfig.EXACTLY_ONCE_V2 : StreamsConfig.AT_LEAST_ONCE);
    Shaper<String, String> shaper =
        TestTopology.shaper(ShaperOptions.builder())
            .options(options)
            .droppable(record -> !record.value().startsWith("!"));
    try (TestTopology test = TestTopology.of(shaper, config)) {
      int number = 0;
      for (Step step : program) {
        for (int i = 0; i < step.records; i++) {
          String value = (step.droppable ? "" : "!") + number++;
          test.pipe(KEYS[step.key], value, test.nowMs() - step.ageMs);
        }
        if (step.advanceMs > 0) {
          test.step(step.advanceMs);
        }
      }
      test.checkLaw();
      if (options.time() == ShaperOptions.Time.WALL) {
        test.drain().advance(10_000).checkLaw();
      }
    }
  }

  @Provide
  Arbitrary<List<Step>> programs() {
    Arbitrary<Long> ages =
        Arbitraries.oneOf(
            Arbitraries.of(
                0L, 20L, 21L, 700L, 3000L, 100_000L, 700_000_000L, -50L, -5_000_000_000L),
            Arbitraries.longs().between(0, 2000));
    Arbitrary<Long> advances =
        Arbitraries.frequencyOf(
            Tuple.of(5, Arbitraries.longs().between(0, 60)),
            Tuple.of(1, Arbitraries.longs().between(0, 5000)));
    Arbitrary<Step> steps =
        Combinators.combine(
                Arbitraries.integers().between(0, KEYS.length - 1),
                Arbitraries.integers().between(0, 12),
                ages,
                Arbitraries.of(true, true, true, false),
                advances)
            .as(Step::new);
    return steps.list().ofMinSize(1).ofMaxSize(60);
  }

  @Provide
  Arbitrary<ShaperOptions> options() {
    Arbitrary<Double> rates = Arbitraries.of(20.0, 100.0, 1000.0).injectNull(0.2);
    Arbitrary<Integer> limits = Arbitraries.of(1, 5, 30, 100_000);
    Arbitrary<Long> byteLimits = Arbitraries.of(1L, 200L, 1000L, 1_000_000L);
    Arbitrary<Integer> batches = Arbitraries.of(1, 2, 64);
    Arbitrary<Integer> targets = Arbitraries.of(0, 5, 100);
    Arbitrary<Long> maxAges = Arbitraries.of(100L, 1000L).injectNull(0.6);
    Arbitrary<Boolean> ceilings = Arbitraries.of(true, false);
    Arbitrary<ShaperOptions.Time> times = Arbitraries.of(ShaperOptions.Time.class);
    return Combinators.combine(
            rates, limits, byteLimits, batches, targets, maxAges, ceilings, times)
        .as(
            (rate, limit, bytes, batch, targetMs, maxAgeMs, ceiling, time) -> {
              ShaperOptions.Builder builder =
                  ShaperOptions.builder()
                      .maxRecords(limit)
                      .maxBytes(bytes)
                      .dropBatch(batch)
                      .target(Duration.ofMillis(targetMs))
                      .interval(Duration.ofMillis(targetMs * 3L + 20))
                      .time(time);
              if (rate != null) {
                builder.rate(rate);
              }
              if (maxAgeMs != null) {
                builder.maxAge(Duration.ofMillis(maxAgeMs));
              }
              return (ceiling ? builder : builder.withoutCeiling()).build();
            });
  }
}
