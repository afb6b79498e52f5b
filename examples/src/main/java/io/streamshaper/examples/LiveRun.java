package io.streamshaper.examples;

import io.streamshaper.ShaperOptions;
import io.streamshaper.examples.page.Page;
import io.streamshaper.examples.page.Readings;
import io.streamshaper.examples.page.Snapshot;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.streams.KafkaStreams;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The demo without an end: an application under load, with a page that shows it and switches the
 * hot key and the shaper. To switch the shaper is to restart the application with another topology,
 * on the same topics: what either leaves unread or queued is there for the next.
 */
final class LiveRun implements AutoCloseable, Page.Switches {
  private static final Logger LOG = LoggerFactory.getLogger(LiveRun.class);
  private static final Duration ENDLESS = Duration.ofNanos(Long.MAX_VALUE);

  /** A demo that is left alone fills no disk: the oldest goes first, unread or not. */
  private static final Map<String, String> BOUNDED =
      Map.of(
          TopicConfig.RETENTION_BYTES_CONFIG, Long.toString(512L * 1024 * 1024),
          TopicConfig.SEGMENT_BYTES_CONFIG, Integer.toString(64 * 1024 * 1024));

  private final Step step;
  private final Load load;
  private final Application application;
  private final ShaperOptions options;
  private final List<Snapshot.Setting> settings;
  private final Readings readings;
  private final Thread sender;
  private final ExecutorService switching = Executors.newSingleThreadExecutor(LiveRun::daemon);
  private volatile boolean hot = true;
  private volatile boolean shaperWanted = true;
  private volatile boolean shaped;
  private volatile String state = "starting";
  private volatile KafkaStreams streams;
  private volatile Page page;

  LiveRun(
      Admin admin,
      String bootstrapServers,
      Step.Call call,
      ShaperOptions options,
      DemoRun.Rates rates)
      throws Exception {
    this.options = options;
    settings = Readings.settings(options);
    step = new Step(call);
    application = new Application(admin, bootstrapServers, Map.of(), step::processor);
    bound(admin);
    readings = new Readings(application.meters(), Application.SHAPER);
    load =
        new Load(
            bootstrapServers,
            application.in(),
            rates.hotPerSecond(),
            rates.quietKeys(),
            rates.quietPerSecond());
    sender = new Thread(() -> load.run(ENDLESS), "load");
  }

  private void bound(Admin admin) throws InterruptedException, ExecutionException {
    List<AlterConfigOp> bounds =
        BOUNDED.entrySet().stream()
            .map(
                bound ->
                    new AlterConfigOp(
                        new ConfigEntry(bound.getKey(), bound.getValue()),
                        AlterConfigOp.OpType.SET))
            .toList();
    admin
        .incrementalAlterConfigs(
            application.topics().stream()
                .collect(
                    Collectors.toMap(
                        topic -> new ConfigResource(ConfigResource.Type.TOPIC, topic),
                        topic -> bounds)))
        .all()
        .get();
  }

  /** Starts the load and the application, and the page when both are warm. */
  void start(Duration warmUp) throws InterruptedException {
    start(true);
    sender.start();
    Thread.sleep(warmUp.toMillis());
    var unused = snapshot(); // so that the first that is shown begins here
    TimeUnit.SECONDS.sleep(1);
    page = new Page(this::snapshot, this);
  }

  Page page() {
    return page;
  }

  /** Records that the step has taken so far. */
  long forwarded() {
    return step.calls();
  }

  @Override
  public void hot(boolean on) {
    hot = on;
    load.hot(on);
  }

  @Override
  public void shaper(boolean on) {
    shaperWanted = on;
    switching.execute(this::restart);
  }

  private void restart() {
    boolean wanted = shaperWanted;
    if (wanted == shaped) {
      return;
    }
    try {
      state = "restarting";
      application.stop();
      start(wanted);
    } catch (IllegalStateException e) {
      LOG.error("the application did not restart", e);
      state = "failed";
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void start(boolean withShaper) throws InterruptedException {
    shaped = withShaper;
    application.start(withShaper ? options : null, starting -> streams = starting);
    state = "running";
  }

  private Snapshot snapshot() {
    KafkaStreams asked = streams;
    Snapshot.Queue queue = asked == null || !shaped ? null : readings.queue(asked);
    Map<String, Double> totals = readings.totals();
    totals.put("in", (double) load.sent());
    totals.put("forwarded", (double) step.calls());
    Map<String, Snapshot.Delay> delays = new LinkedHashMap<>();
    delays.put("quiet", delay(step.delayMs(false)));
    delays.put("hot", delay(step.delayMs(true)));
    return new Snapshot(
        new Snapshot.Point(
            System.currentTimeMillis(),
            shaped,
            readings.perSecond(totals),
            delays,
            queue == null ? null : queue.records(),
            asked == null ? null : Readings.unread(asked)),
        new Snapshot.Now(state, queue, new Snapshot.Switches(hot, shaperWanted)),
        settings);
  }

  private static Snapshot.Delay delay(Histogram ms) {
    return ms.getTotalCount() == 0
        ? new Snapshot.Delay(null, null, null)
        : new Snapshot.Delay(
            (double) ms.getValueAtPercentile(50),
            (double) ms.getValueAtPercentile(99),
            (double) ms.getMaxValue());
  }

  /** Removes all that the run has made. */
  @Override
  public void close() {
    end();
    load.close();
    application.close();
  }

  /** As {@link #close}, where the broker and this JVM are about to end. */
  void abandon() {
    end();
    application.deleteStateDir();
  }

  private void end() {
    switching.shutdownNow();
    if (page != null) {
      page.close();
    }
    load.stop();
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "switching");
    thread.setDaemon(true);
    return thread;
  }
}
