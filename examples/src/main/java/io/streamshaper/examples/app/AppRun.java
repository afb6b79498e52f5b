package io.streamshaper.examples.app;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.distribution.DistributionStatisticConfig;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.streamshaper.Shaped;
import io.streamshaper.Shaper;
import io.streamshaper.ShaperMetrics;
import io.streamshaper.examples.http.HttpServer;
import io.streamshaper.examples.http.HttpServer.Answer;
import io.streamshaper.examples.page.Page;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.stream.DoubleStream;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A shaper between topics, and what is to be seen of it over HTTP. */
final class AppRun implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(AppRun.class);

  /** To change it is to lose what is queued. */
  private static final String SHAPER = "shaper";

  /** With {@link HttpServer}'s, below the ten seconds after which an orchestrator kills. */
  private static final Duration STOP = Duration.ofSeconds(8);

  /** A failure that comes back at once fills neither the log nor the broker's. */
  private static final Duration PAUSE_AFTER_FAILURE = Duration.ofSeconds(1);

  /** More of them in a while than these, of each thread, and it is no passing trouble. */
  private static final int FAILURES = 3;

  private static final Duration WHILE = Duration.ofMinutes(10);

  private static final Duration FRESH = Duration.ofMillis(250);

  private static final String PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8";

  private final PrometheusMeterRegistry registry =
      new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
  private final Readiness readiness = new Readiness();
  private final Failures failures;
  private final CountDownLatch ended = new CountDownLatch(1);
  private final KafkaStreams streams;
  private final Page page;
  private final HttpServer http;
  private Answer metrics;
  private long metricsNanos;
  private final AtomicBoolean closed = new AtomicBoolean();

  private AppRun(AppConfig config) {
    registry.config().meterFilter(new SojournBuckets());
    failures = new Failures(FAILURES * config.threads(), WHILE);
    streams = new KafkaStreams(topology(config), properties(config));
    streams.setUncaughtExceptionHandler(this::replaceThread);
    streams.setGlobalStateRestoreListener(readiness);
    streams.setStateListener(
        (state, before) -> {
          if (state.hasCompletedShutdown()) {
            ended.countDown();
          }
        });
    page = config.page() ? Page.of(streams, registry, config.options()) : null;
    http = startHttp(config);
  }

  /**
   * Starts everything, or nothing.
   *
   * @throws RuntimeException that says why
   */
  static AppRun start(AppConfig config) {
    AppRun run = new AppRun(config);
    run.streams.start();
    log.info(
        "{} to {}, dropped to {}; http://{}:{}",
        String.join(", ", config.inputs()),
        config.output(),
        config.dropped() == null ? "nowhere" : config.dropped(),
        config.bind(),
        run.http.port());
    return run;
  }

  /** Until it is closed, or Kafka Streams has given up. */
  void awaitEnd() throws InterruptedException {
    ended.await();
  }

  /** Stops cleanly: all that was done is committed, what is queued is stored. */
  @Override
  public void close() {
    if (closed.getAndSet(true)) {
      return;
    }
    boolean clean =
        streams.close(
            CloseOptions.timeout(STOP)
                .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
    http.close();
    if (page != null) {
      page.close();
    }
    log.info(clean ? "stopped" : "not stopped within " + STOP);
  }

  private Topology topology(AppConfig config) {
    Counter shared =
        Counter.builder("shaper.flow.shared")
            .baseUnit("records")
            .description("Records in which nothing was found that makes a flow; they share one")
            .tag("shaper", SHAPER)
            .register(registry);
    Shaper<byte[], byte[]> shaper =
        Shaper.<byte[], byte[]>named(SHAPER)
            .serdes(Serdes.ByteArray(), Serdes.ByteArray())
            .options(config.options())
            .metrics(ShaperMetrics.in(registry));
    config.flow().apply(shaper, shared::increment);

    StreamsBuilder builder = new StreamsBuilder();
    Shaped<byte[], byte[]> shaped =
        shaper.shape(
            builder.stream(config.inputs(), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())));
    Produced<byte[], byte[]> asTheyCame = Produced.with(Serdes.ByteArray(), Serdes.ByteArray());
    shaped.forwarded().to(config.output(), asTheyCame);
    if (config.dropped() != null) {
      shaped.dropped().to(config.dropped(), asTheyCame);
    }
    return builder.build();
  }

  private static Properties properties(AppConfig config) {
    Properties properties = new Properties();
    properties.putAll(config.streams());
    return properties;
  }

  private HttpServer startHttp(AppConfig config) {
    try {
      return HttpServer.start(config.bind(), config.port(), answers(), routes -> {});
    } catch (RuntimeException e) {
      streams.close(Duration.ZERO);
      throw new IllegalStateException(
          "%s and %s must be an address and a port of this machine that are free, was %s:%d"
              .formatted(AppConfig.BIND, AppConfig.PORT, config.bind(), config.port()));
    }
  }

  private Map<String, Function<String, Answer>> answers() {
    Map<String, Function<String, Answer>> answers = new HashMap<>();
    answers.put("/metrics", query -> metrics());
    answers.put("/health/live", query -> health(isAlive()));
    answers.put("/health/ready", query -> health(readiness.isReady(streams.state())));
    if (page != null) {
      answers.putAll(page.answers());
    }
    return answers;
  }

  /** Who asks more often gets the same again: the stream thread needs the CPU. */
  private synchronized Answer metrics() {
    if (metrics == null || System.nanoTime() - metricsNanos > FRESH.toNanos()) {
      metricsNanos = System.nanoTime();
      metrics = new Answer(200, PROMETHEUS_TEXT, registry.scrape().getBytes(UTF_8));
    }
    return metrics;
  }

  private Answer health(boolean good) {
    return new Answer(good ? 200 : 503, "text/plain", (streams.state() + "\n").getBytes(UTF_8));
  }

  private boolean isAlive() {
    return !streams.state().hasStartedOrFinishedShuttingDown();
  }

  /**
   * A broker that wakes up can answer "coordinator loading", which the consumer takes for fatal.
   * What does not pass is for whoever runs the process: they see it end.
   */
  private StreamThreadExceptionResponse replaceThread(Throwable failure) {
    String reason = AppCommand.reason(failure);
    if (!failures.bearable(System.nanoTime())) {
      log.error("stream threads fail again and again, so the application ends: {}", reason);
      return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
    }
    log.warn("a stream thread is replaced: {}", reason);
    try {
      Thread.sleep(PAUSE_AFTER_FAILURE.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return StreamThreadExceptionResponse.REPLACE_THREAD;
  }

  /** A histogram that Prometheus can add up over tasks, of few series. */
  private static final class SojournBuckets implements MeterFilter {
    private static final double[] BOUNDARIES_NANOS =
        DoubleStream.of(1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 60e3)
            .map(millis -> millis * 1e6)
            .toArray();

    @Override
    public DistributionStatisticConfig configure(
        Meter.Id id, DistributionStatisticConfig distribution) {
      return id.getName().equals("shaper.sojourn")
          ? DistributionStatisticConfig.builder()
              .serviceLevelObjectives(BOUNDARIES_NANOS)
              .build()
              .merge(distribution)
          : distribution;
    }
  }
}
