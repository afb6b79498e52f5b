package io.streamshaper.examples;

import com.fasterxml.jackson.annotation.JsonValue;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.streamshaper.Shaped;
import io.streamshaper.Shaper;
import io.streamshaper.ShaperMetrics;
import io.streamshaper.ShaperOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;

/**
 * One start of an application after an outage: it finds what has piled up, while live traffic goes
 * on. What is older than the maximum age is worthless.
 */
final class Outage {
  private static final Produced<String, byte[]> PRODUCED =
      Produced.with(Serdes.String(), Serdes.ByteArray());

  private static final String FRESH = "fresh";
  private static final String OLD = "old";

  private final Remedy remedy;
  private final Duration maxAge;
  private final int quietKeys;
  private final Step.Call call;
  private final Set<String> freshKeys = new HashSet<>();
  private final long startNanos = System.nanoTime();
  private final MeterRegistry meters = new SimpleMeterRegistry();
  private long stale;
  private volatile double firstFreshSeconds = Double.NaN;
  private volatile double everyKeySeconds = Double.NaN;
  private volatile double stalePerSecond = Double.NaN;

  /** What is done about the backlog. */
  enum Remedy {
    DISCARD("read and discard"),
    SHAPER_DISCARD("shaper, drops go nowhere"),
    DIVERT("read and write to a topic"),
    SHAPER("shaper, drops to a topic"),
    NONE("without the shaper");

    private final String label;

    Remedy(String label) {
      this.label = label;
    }

    @JsonValue
    String label() {
      return label;
    }

    private boolean keepsDropped() {
      return this == DIVERT || this == SHAPER;
    }
  }

  /** What one start showed; NaN: not in time. */
  record Measured(
      double firstFreshSeconds,
      double everyKeySeconds,
      double stalePerSecond,
      BenchRun.Balance balance) {}

  private Outage(Remedy remedy, Duration maxAge, int quietKeys, Step.Call call) {
    this.remedy = remedy;
    this.maxAge = maxAge;
    this.quietKeys = quietKeys;
    this.call = call;
    meters.config().onMeterRemoved(this::keepCount);
  }

  /**
   * Starts it, waits until each quiet key had a fresh record forwarded, and stops it.
   *
   * @param in what all of them read
   * @param call the step that records are forwarded to
   * @param timeout after which it is given up
   */
  static Measured run(
      Admin admin,
      String servers,
      Path stateDir,
      String id,
      String in,
      Remedy remedy,
      Duration maxAge,
      int quietKeys,
      Step.Call call,
      Duration timeout)
      throws Exception {
    System.gc(); // what the one before left is not this one's
    try (BenchRun run = new BenchRun(admin, servers, id, stateDir, Map.of())) {
      Outage outage = new Outage(remedy, maxAge, quietKeys, call);
      run.start(outage.topology(in, run.out(), run.dropped()));
      run.await(timeout, () -> !Double.isNaN(outage.everyKeySeconds));
      run.stop();
      BenchRun.Balance balance =
          run.balance(Function.identity(), remedy.keepsDropped() ? 0 : outage.stale());
      return new Measured(
          outage.firstFreshSeconds, outage.everyKeySeconds, outage.stalePerSecond, balance);
    }
  }

  private Topology topology(String in, String out, String dropped) {
    StreamsBuilder builder = new StreamsBuilder();
    KStream<String, byte[]> records =
        builder.stream(in, Consumed.with(Serdes.String(), Serdes.ByteArray()));
    KStream<String, byte[]> fresh = records;
    KStream<String, byte[]> old = null;
    switch (remedy) {
      case NONE -> {}
      case DISCARD, DIVERT -> {
        KStream<String, byte[]> both = records.process(this::byAge);
        fresh = both.filter((key, value) -> true, Named.as(FRESH));
        if (remedy.keepsDropped()) {
          old = both.filter((key, value) -> true, Named.as(OLD));
        }
      }
      case SHAPER, SHAPER_DISCARD -> {
        Shaped<String, byte[]> shaped =
            Shaper.<String, byte[]>named("shaper")
                .serdes(Serdes.String(), Serdes.ByteArray())
                .options(ShaperOptions.builder().maxAge(maxAge).build())
                .metrics(ShaperMetrics.in(meters))
                .shape(records);
        fresh = shaped.forwarded();
        if (remedy.keepsDropped()) {
          old = shaped.dropped();
        }
      }
    }
    if (old != null) {
      old.to(dropped, PRODUCED);
    }
    fresh.process(this::step).to(out, PRODUCED);
    return builder.build();
  }

  private boolean isFresh(Record<String, byte[]> record) {
    return System.currentTimeMillis() - record.timestamp() <= maxAge.toMillis();
  }

  /** What a shaper does that neither queues nor looks at keys. */
  private Processor<String, byte[], String, byte[]> byAge() {
    return new ContextualProcessor<>() {
      @Override
      public void process(Record<String, byte[]> record) {
        if (isFresh(record)) {
          context().forward(record, FRESH);
        } else {
          stale++;
          if (remedy.keepsDropped()) {
            context().forward(record, OLD);
          }
        }
      }
    };
  }

  private Processor<String, byte[], String, byte[]> step() {
    return new ContextualProcessor<>() {
      @Override
      public void process(Record<String, byte[]> record) {
        if (isFresh(record)) {
          noteFresh(record.key());
        }
        call.run();
        context().forward(record);
      }
    };
  }

  /** Of the task that is about to end. */
  private void keepCount(Meter meter) {
    stale += dropped(meter);
  }

  private long stale() {
    return stale + meters.getMeters().stream().mapToLong(Outage::dropped).sum();
  }

  private static long dropped(Meter meter) {
    boolean isDropped = "dropped".equals(meter.getId().getTag("outcome"));
    return isDropped ? (long) ((FunctionCounter) meter).count() : 0;
  }

  private void noteFresh(String key) {
    double seconds = (System.nanoTime() - startNanos) / 1e9;
    if (Double.isNaN(firstFreshSeconds)) {
      firstFreshSeconds = seconds;
      stalePerSecond = stale() / seconds;
    }
    if (!Load.isHot(key) && freshKeys.add(key) && freshKeys.size() == quietKeys) {
      everyKeySeconds = seconds;
    }
  }
}
