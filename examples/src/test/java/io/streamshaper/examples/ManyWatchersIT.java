package io.streamshaper.examples;

import io.streamshaper.ShaperOptions;
import io.streamshaper.examples.http.HttpServer;
import io.streamshaper.examples.page.Page;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.streams.KafkaStreams;
import org.junit.jupiter.api.Test;

/** What a thousand open pages, and some that never read, are to the stream. */
class ManyWatchersIT {
  private static final int WATCHERS = 1000;
  private static final int DEAF = 32;
  private static final int MEASURED = 250_000;
  private static final int ROUNDS = Integer.getInteger("watchers.rounds", 1);
  private static final int BACKLOG = (3 * ROUNDS + 4) * MEASURED;
  private static final Duration NEVER = Duration.ofDays(1);

  /** Answers to so many requests are more than the sockets' buffers take. */
  private static final int UNREAD_REQUESTS = 5000;

  @Test
  void watchersNeverKeepTheStreamFromItsWork() throws Exception {
    Step step = new Step(() -> {});
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
      AtomicReference<KafkaStreams> streams = new AtomicReference<>();
      application.start(options, streams::set);
      try (Page page = Page.of(streams.get(), application.meters(), options);
          HttpServer server = HttpServer.start("127.0.0.1", 0, page.answers(), routes -> {})) {
        perSecond(step); // warms up
        try (Watchers watchers = new Watchers(server.port())) {
          watchers.start();
          Patience.await("all watch", () -> watchers.answered() >= WATCHERS);
          double[] ratios = new double[ROUNDS];
          for (int round = 0; round < ROUNDS; round++) {
            watchers.ask(false);
            double alone = perSecond(step);
            watchers.ask(true);
            long before = watchers.answered();
            Patience.await("all ask again", () -> watchers.answered() >= before + WATCHERS);
            double watched = perSecond(step);
            ratios[round] = watched / alone;
            System.out.printf(
                "%,.0f records/s while nobody asks, %,.0f with %,d that ask once a second: %.2f%n",
                alone, watched, WATCHERS, ratios[round]);
          }
          Arrays.sort(ratios);
          for (int i = 0; i < DEAF; i++) {
            watchers.addDeaf();
          }
          System.out.printf(
              "median %.2f; %,.0f records/s with %d more that never read%n",
              ratios[ROUNDS / 2], perSecond(step), DEAF);
        }
      }
      Patience.await("all is done", () -> step.calls() == load.sent());
      application.stop();
    }
  }

  private static double perSecond(Step step) throws Exception {
    long before = step.calls();
    long startNanos = System.nanoTime();
    Patience.await("records are served", () -> step.calls() >= before + MEASURED);
    return (step.calls() - before) * 1e9 / (System.nanoTime() - startNanos);
  }

  /** Browsers, as a server sees them; one thread is all of them. */
  private static final class Watchers extends Thread implements AutoCloseable {
    private static final Pattern TAKEN = Pattern.compile("\"taken\":(\\d+)");

    private final InetSocketAddress address;
    private final List<SocketChannel> reading = new ArrayList<>();
    private final List<SocketChannel> deaf = new ArrayList<>();
    private long answered;
    private String seen = "0";
    private volatile boolean asking = true;
    private volatile boolean closed;

    private Watchers(int port) {
      super("watchers");
      address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    }

    private SocketChannel connect() throws IOException {
      SocketChannel channel = SocketChannel.open();
      channel.setOption(StandardSocketOptions.SO_RCVBUF, 64 * 1024);
      channel.connect(address);
      channel.configureBlocking(false);
      return channel;
    }

    /** Asks, and asks, and takes nothing of what it gets. */
    private void addDeaf() throws IOException {
      SocketChannel channel = connect();
      deaf.add(channel);
      for (int i = 0; i < UNREAD_REQUESTS && channel.write(request("0")) > 0; i++) {
        Thread.onSpinWait();
      }
    }

    private synchronized long answered() {
      return answered;
    }

    /** Comes one after the other, and from then on asks once a second. */
    @Override
    public void run() {
      try {
        while (!closed) {
          for (int i = 0; i < WATCHERS && !closed; i++) {
            if (i == reading.size()) {
              reading.add(connect());
            }
            count(take(reading.get(i)));
            if (asking) {
              reading.get(i).write(request(seen));
            }
            if (i % 10 == 9) {
              LockSupport.parkNanos(Duration.ofSeconds(10).toNanos() / WATCHERS);
            }
          }
        }
      } catch (IOException e) {
        throw new UncheckedIOException("a watcher was cut off", e);
      } finally {
        Stream.concat(reading.stream(), deaf.stream()).forEach(Watchers::hangUp);
      }
    }

    private synchronized void count(int answers) {
      answered += answers;
    }

    private static void hangUp(SocketChannel channel) {
      try {
        channel.close();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    /** As the page does: for what it has not seen. */
    private static ByteBuffer request(String seen) {
      return StandardCharsets.US_ASCII.encode(
          "GET /page/data?after=" + seen + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }

    private int take(SocketChannel channel) throws IOException {
      ByteBuffer buffer = ByteBuffer.allocate(16 * 1024);
      int answers = 0;
      while (channel.read(buffer.clear()) > 0) {
        Matcher taken = TAKEN.matcher(StandardCharsets.US_ASCII.decode(buffer.flip()));
        for (; taken.find(); answers++) {
          seen = taken.group(1);
        }
      }
      return answers;
    }

    /** Whether they go on asking; they stay connected. */
    private void ask(boolean on) {
      asking = on;
    }

    /** Soon they are gone. */
    @Override
    public void close() {
      closed = true;
    }
  }
}
