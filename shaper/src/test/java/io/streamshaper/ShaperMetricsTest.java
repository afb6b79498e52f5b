package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.TaskId;
import org.junit.jupiter.api.Test;

class ShaperMetricsTest {
  private static final Map<String, Object> NO_CONFIG = Map.of();

  private final MeterRegistry registry = new SimpleMeterRegistry();

  @Test
  void whatWentInIsForwardedOrDroppedOrQueuedAtAnyScrape() {
    try (TestTopology test = topology(options().rate(100).burst(10))) {
      for (int round = 0; round < 300; round++) {
        test.pipe("a", "a" + round).pipe("a", "b" + round).pipe("b", "c" + round);
        test.step(10);

        assertThat(records("received") + records("restored"))
            .isEqualTo(records("forwarded") + records("dropped") + gauge("shaper.queued.records"));
      }
      assertThat(records("received")).isEqualTo(900);
      assertThat(records("forwarded")).isEqualTo(test.forwarded.size());
      assertThat(records("dropped")).isEqualTo(test.dropped.size()).isPositive();
      assertThat(gauge("shaper.queued.records")).isPositive();
      assertThat(gauge("shaper.queued.bytes")).isPositive();
      assertThat(gauge("shaper.flow.backlog.max")).isPositive();
      assertThat(gauge("shaper.flows.dropping")).isPositive();
      assertThat(registry.get("shaper.sojourn").timer().count()).isEqualTo(test.forwarded.size());
      assertThat(registry.get("shaper.sojourn").timer().max(TimeUnit.SECONDS)).isBetween(0.2, 2.0);
      test.checkLaw();
    }
  }

  @Test
  void dropsThatNobodyTakesAreCountedAllTheSame() {
    ShaperOptions.Builder options =
        options().rate(100).burst(10).maxRecords(50).maxAge(Duration.ofSeconds(2));
    StreamsBuilder builder = new StreamsBuilder();
    TestTopology.shaper(options)
        .metrics(in())
        .shape(builder.stream(TestTopology.IN, Consumed.with(Serdes.String(), Serdes.String())))
        .forwarded()
        .to(TestTopology.OUT, Produced.with(Serdes.String(), Serdes.String()));
    Topology topology = builder.build();
    assertThat(topology.describe().toString()).doesNotContain("s-dropped");
    try (TestTopology test = TestTopology.of(topology, NO_CONFIG)) {
      test.pipe("a", "expired at once", test.nowMs() - 5000);
      for (int round = 0; round < 300; round++) {
        test.pipe("a", "a" + round).pipe("a", "b" + round).pipe("b", "c" + round);
        test.step(10);

        assertThat(records("received"))
            .isEqualTo(records("forwarded") + records("dropped") + gauge("shaper.queued.records"));
      }
      assertThat(records("received")).isEqualTo(901);
      assertThat(records("forwarded")).isEqualTo(test.forwarded.size());
      for (String reason : Set.of("codel", "expired", "overlimit")) {
        assertThat(registry.get("shaper.records").tag("reason", reason).functionCounter().count())
            .as(reason)
            .isPositive();
      }
      assertThat(test.saved()).isPositive();
      test.step(5000).pipe("end", "has the driver commit");
      assertThat(test.saved()).isZero();
    }
  }

  @Test
  void oddTimestampsAndMarksAreCounted() {
    Shaper<String, String> shaper =
        TestTopology.shaper(options().rate(10).burst(1)).droppable(record -> false);
    try (TestTopology test = TestTopology.of(shaper.metrics(in()), NO_CONFIG)) {
      test.pipe("a", "long ago", 0).pipe("a", "far off", Long.MAX_VALUE / 1_000_000);
      test.pipeMany("a", 0, 50);
      test.advance(5000);

      assertThat(counter("shaper.timestamps.implausible")).isEqualTo(2);
      assertThat(counter("shaper.marks")).isPositive();
      assertThat(records("dropped")).isZero();
      test.checkLaw();
    }
  }

  @Test
  void everyMeterSaysWhatItIsAndCarriesNoKey() {
    try (TestTopology test = topology(options().rate(100))) {
      test.pipeMany("a-key", 0, 50).pipeMany("another-key", 0, 50);

      Set<String> tags =
          registry.getMeters().stream()
              .flatMap(meter -> meter.getId().getTags().stream())
              .map(Tag::getKey)
              .collect(Collectors.toSet());
      assertThat(tags).containsExactlyInAnyOrder("shaper", "task", "outcome", "reason", "list");
      assertThat(registry.getMeters())
          .extracting(Meter::getId)
          .allSatisfy(
              id -> {
                assertThat(id.getDescription()).isNotBlank();
                assertThat(id.getBaseUnit() != null || id.getType() == Meter.Type.TIMER).isTrue();
                assertThat(id.getTag("shaper")).isEqualTo(TestTopology.NAME);
                assertThat(id.getTag("task")).isEqualTo("0_0");
                assertThat(id.toString()).doesNotContain("key'");
              });
    }
  }

  @Test
  void metersOfOneNameHaveOneDescription() {
    try (TestTopology test = topology(options().rate(100))) {
      test.pipe("a", "value");
      Map<String, Set<String>> descriptions =
          registry.getMeters().stream()
              .map(Meter::getId)
              .collect(
                  Collectors.groupingBy(
                      Meter.Id::getName,
                      Collectors.mapping(Meter.Id::getDescription, Collectors.toSet())));
      assertThat(descriptions.values()).allSatisfy(set -> assertThat(set).hasSize(1));
    }
  }

  @Test
  void theNumberOfSeriesDoesNotDependOnTheNumberOfKeys() {
    try (TestTopology test = topology(options().rate(100))) {
      int before = registry.getMeters().size();
      for (int i = 0; i < 2000; i++) {
        test.pipe("key " + i, "x");
      }
      test.advance(100);
      assertThat(registry.getMeters()).hasSize(before);
    }
  }

  @Test
  void aHundredTasksThatComeAndGoLeaveNoMeterBehind() {
    for (int i = 0; i < 100; i++) {
      try (TestTopology test = topology(options().rate(100).burst(1))) {
        test.pipeMany("a", 0, 5).step(10);
        assertThat(records("received")).isEqualTo(5);
        assertNothingIsNaN();
      }
      assertThat(registry.getMeters()).isEmpty();
    }
  }

  /** Prometheus' client keeps collectors of its own beside the meters. */
  @Test
  void aHundredTasksThatComeAndGoLeavePrometheusNothingToScrape() {
    PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    for (int i = 0; i < 100; i++) {
      try (TestTopology test =
          TestTopology.of(
              TestTopology.shaper(options().rate(100).burst(1))
                  .metrics(ShaperMetrics.in(prometheus)),
              NO_CONFIG)) {
        test.pipeMany("a", 0, 5).step(10);
        assertThat(prometheus.scrape())
            .contains("outcome=\"received\",reason=\"none\",shaper=\"s\",task=\"0_0\"} 5.0")
            .contains("shaper_sojourn_seconds_count{")
            .doesNotContain("NaN");
      }
      assertThat(prometheus.scrape()).isBlank();
    }
  }

  @Test
  void aTaskThatClosesLateLeavesItsSuccessorsMetersAlone() {
    TaskId task = new TaskId(0, 1);
    var first = in().open("s", task, true);
    var second = in().open("s", task, true);
    second.stats().countReceived();

    first.close();

    assertThat(records("received")).isEqualTo(1);
    second.close();
    assertThat(registry.getMeters()).isEmpty();
  }

  @Test
  void aTaskThatComesBackShowsItsOwnNumbersAndNoneOfItsPredecessors() {
    for (int records = 1; records <= 3; records++) {
      try (TestTopology test = topology(options().rate(10).burst(1))) {
        test.pipeMany("a", 0, records);
        test.step(10);
        assertThat(records("received")).isEqualTo(records);
        assertThat(gauge("shaper.queued.records")).isEqualTo(records - records("forwarded"));
      }
    }
  }

  /** Micrometer holds what it reads by a weak reference. */
  @Test
  void aGarbageCollectionLeavesTheNumbersOfALiveTask() {
    try (TestTopology test = topology(options().rate(10).burst(1))) {
      test.pipeMany("a", 0, 5).step(10);
      collectGarbage();

      assertThat(records("received")).isEqualTo(5);
      assertThat(gauge("shaper.queued.records")).isPositive();
      assertNothingIsNaN();
    }
  }

  @Test
  void aScrapeWhileRecordsMoveSeesCountersThatOnlyGrowAndNothingLeaveBeforeItCame()
      throws Exception {
    try (TestTopology test = topology(options().rate(1000).burst(10))) {
      AtomicBoolean ended = new AtomicBoolean();
      CountDownLatch scraping = new CountDownLatch(1);
      CompletableFuture<Void> scraper =
          CompletableFuture.runAsync(
              () -> {
                double before = 0;
                while (!ended.get()) {
                  scraping.countDown();
                  double left = records("forwarded") + records("dropped");
                  double came = records("received") + records("restored");
                  assertThat(left).isBetween(before, came);
                  assertNothingIsNaN();
                  before = left;
                }
              },
              task -> new Thread(task, "scraper").start());
      scraping.await();
      try {
        for (int round = 0; round < 2000; round++) {
          test.pipe("a", "a" + round).pipe("b", "b" + round);
          test.step(1);
        }
      } finally {
        ended.set(true);
      }
      scraper.join();
      assertThat(records("received")).isEqualTo(4000);
      test.checkLaw();
    }
  }

  private static void collectGarbage() {
    WeakReference<Object> garbage = new WeakReference<>(new Object());
    while (garbage.get() != null) {
      System.gc();
    }
  }

  private void assertNothingIsNaN() {
    for (Meter meter : registry.getMeters()) {
      meter.measure().forEach(m -> assertThat(m.getValue()).as(meter.toString()).isNotNaN());
    }
  }

  private static ShaperOptions.Builder options() {
    return ShaperOptions.builder().target(Duration.ofMillis(100)).interval(Duration.ofMillis(500));
  }

  private ShaperMetrics in() {
    return ShaperMetrics.in(registry);
  }

  private TestTopology topology(ShaperOptions.Builder options) {
    return TestTopology.of(TestTopology.shaper(options).metrics(in()), NO_CONFIG);
  }

  private double records(String outcome) {
    return registry.find("shaper.records").tag("outcome", outcome).functionCounters().stream()
        .mapToDouble(FunctionCounter::count)
        .sum();
  }

  private double counter(String name) {
    return registry.get(name).functionCounter().count();
  }

  private double gauge(String name) {
    return registry.get(name).gauge().value();
  }
}
