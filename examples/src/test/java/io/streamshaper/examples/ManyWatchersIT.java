package io.streamshaper.examples;

import io.streamshaper.ShaperOptions;
import io.streamshaper.examples.http.HttpServer;
import io.streamshaper.examples.page.Page;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.ToDoubleFunction;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.streams.KafkaStreams;
import org.junit.jupiter.api.Test;

/** What a thousand open pages, and some that never read, are to the stream. */
class ManyWatchersIT {
  private static final int DEAF = 32;
  private static final int MEASURED = 250_000;
  private static final int ROUNDS = Integer.getInteger("watchers.rounds", 1);

  /** Twice what is measured: the stream goes on for a moment after it is told to pause. */
  private static final int BACKLOG = 2 * (2 * ROUNDS + 2) * MEASURED;

  private static final Duration NEVER = Duration.ofDays(1);

  private final AtomicReference<Thread> streamThread = new AtomicReference<>();
  private KafkaStreams streams;
  private final Step step = new Step(() -> streamThread.setPlain(Thread.currentThread()));

  /** What the stream thread did over some time. */
  private record Work(double perSecond, double cpuNanosPerRecord) {}

  @Test
  void watchersNeverKeepTheStreamFromItsWork() throws Exception {
    ShaperOptions options =
        ShaperOptions.builder().rate(1e6).target(NEVER).interval(NEVER.multipliedBy(2)).build();
    try (Broker broker = Broker.start();
        Admin admin =
            Admin.create(
                Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()));
        Application application =
            new Application(admin, broker.bootstrapServers(), Map.of(), step::processor);
        Load load = new Load(broker.bootstrapServers(), application.in(), 1e6, 50, 1000)) {
      Thread sender = new Thread(() -> load.run(NEVER), "load");
      sender.start();
      Patience.await("a backlog is there", () -> load.sent() >= BACKLOG);
      load.stop();
      sender.join();
      application.start(options, starting -> streams = starting);
      streams.pause();
      try (Page page = Page.of(streams, application.meters(), options);
          HttpServer server = HttpServer.start("127.0.0.1", 0, page.answers(), routes -> {});
          Watchers watchers = Watchers.of(server.port())) {
        Patience.await("all watch", () -> watchers.answered() >= Watchers.COUNT);
        measure(); // warms up
        List<Work> alone = new ArrayList<>();
        List<Work> watched = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
          watchers.ask(false);
          alone.add(measure());
          watchers.ask(true);
          long before = watchers.answered();
          Patience.await("all ask again", () -> watchers.answered() >= before + Watchers.COUNT);
          watched.add(measure());
        }
        print("nobody asks", alone);
        print("%,d ask once a second".formatted(Watchers.COUNT), watched);
        for (int i = 0; i < DEAF; i++) {
          watchers.addDeaf();
        }
        print("and %d more never read".formatted(DEAF), List.of(measure()));
      }
      streams.resume();
      Patience.await("all is done", () -> step.calls() == load.sent());
      application.stop();
    }
  }

  /** Paused before and after: a fast stream must not end its backlog while watchers gather. */
  private Work measure() throws Exception {
    long pausedAt = step.calls();
    streams.resume();
    Patience.await("the stream goes on", () -> step.calls() > pausedAt);
    long beforeCalls = step.calls();
    long beforeCpuNanos = cpuNanos();
    long beforeNanos = System.nanoTime();
    Patience.await("records are served", () -> step.calls() >= beforeCalls + MEASURED);
    double calls = step.calls() - beforeCalls;
    Work work =
        new Work(
            calls * 1e9 / (System.nanoTime() - beforeNanos), (cpuNanos() - beforeCpuNanos) / calls);
    streams.pause();
    return work;
  }

  private long cpuNanos() {
    return ManagementFactory.getThreadMXBean().getThreadCpuTime(streamThread.get().getId());
  }

  private static void print(String who, List<Work> rounds) {
    System.out.printf(
        "%-26s %,9.0f records/s, stream thread %,6.0f ns of CPU a record (median of %d)%n",
        who,
        median(rounds, Work::perSecond),
        median(rounds, Work::cpuNanosPerRecord),
        rounds.size());
  }

  private static double median(List<Work> rounds, ToDoubleFunction<Work> figure) {
    return rounds.stream().mapToDouble(figure).sorted().toArray()[rounds.size() / 2];
  }
}
