package io.streamshaper.examples.page;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.javalin.config.RoutesConfig;
import io.javalin.http.Context;
import io.javalin.http.HttpStatus;
import io.micrometer.core.instrument.MeterRegistry;
import io.streamshaper.ShaperOptions;
import io.streamshaper.examples.http.HttpServer;
import io.streamshaper.examples.http.HttpServer.Answer;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.streams.KafkaStreams;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A web page that shows what a shaper does, second by second. There is one snapshot a second,
 * whoever looks, and a browser asks for those that it has not seen: nothing is held for it, and a
 * slow one waits for itself alone. Thread-safe.
 */
public final class Page implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Page.class);
  private static final int SECONDS_KEPT = 120;

  private static final String UPLOT = "/META-INF/resources/webjars/uplot/1.6.30/dist/";

  private static final String CSS = "text/css; charset=utf-8";
  private static final String JS = "text/javascript; charset=utf-8";

  private static final ObjectMapper JSON = new ObjectMapper();

  private final long startedMs = System.currentTimeMillis();
  private final Supplier<Snapshot> source;
  private final Switches switches;
  private final Deque<Snapshot.Point> points = new ArrayDeque<>();
  private final ScheduledExecutorService clock =
      Executors.newSingleThreadScheduledExecutor(Page::thread);
  private Snapshot newest;
  private long taken;
  private long takenWhenSettingsChanged;

  /** By what was seen, until there is more: a thousand who look cost what one does. */
  private final Map<Long, Answer> answers = new HashMap<>();

  /** What the buttons do; each returns at once. From any thread. */
  public interface Switches {
    void hot(boolean on);

    void shaper(boolean on);
  }

  /**
   * @param page which of several; one that was restarted begins anew
   * @param taken how many snapshots, the newest with it
   * @param settings null: as before
   */
  private record News(
      long page,
      long taken,
      Snapshot.Now now,
      List<Snapshot.Setting> settings,
      List<Snapshot.Point> points) {}

  /**
   * Takes snapshots until it is closed.
   *
   * @param source asked on the page's own thread
   * @param switches null: the page only shows
   */
  @SuppressWarnings("FutureReturnValueIgnored") // the task reports its own failures
  public Page(Supplier<Snapshot> source, Switches switches) {
    this.source = source;
    this.switches = switches;
    // By delay, not by rate: what a suspended machine has missed is not made up for.
    clock.scheduleWithFixedDelay(this::take, 0, 1, TimeUnit.SECONDS);
  }

  /**
   * A page that only shows.
   *
   * @param registry with the meters of the shaper called {@code shaper}
   */
  public static Page of(KafkaStreams streams, MeterRegistry registry, ShaperOptions options) {
    Readings readings = new Readings(registry, "shaper");
    List<Snapshot.Setting> settings = Readings.settings(options);
    return new Page(
        () -> {
          Snapshot.Queue queue = readings.queue(streams);
          return new Snapshot(
              new Snapshot.Point(
                  System.currentTimeMillis(),
                  true,
                  readings.perSecond(readings.totals()),
                  Map.of("all", readings.sojourns()),
                  queue == null ? null : queue.records(),
                  Readings.unread(streams)),
              new Snapshot.Now(
                  streams.state().name().toLowerCase(Locale.ROOT).replace('_', ' '), queue, null),
              settings);
        },
        null);
  }

  /** The page as {@code /}, and what it needs below {@code /page}: for an {@link HttpServer}. */
  public Map<String, Function<String, Answer>> answers() {
    return Map.of(
        "/", file("/page/index.html", "text/html; charset=utf-8"),
        "/page/page.css", file("/page/page.css", CSS),
        "/page/page.js", file("/page/page.js", JS),
        "/page/charts.js", file("/page/charts.js", JS),
        "/page/format.js", file("/page/format.js", JS),
        "/page/icon.svg", file("/page/icon.svg", "image/svg+xml"),
        "/page/uplot.css", file(UPLOT + "uPlot.min.css", CSS),
        "/page/uplot.js", file(UPLOT + "uPlot.iife.min.js", JS),
        "/page/data", this::data);
  }

  /** PUT for the switches, which no other site's page may send without asking us first. */
  public void addRoutes(RoutesConfig routes) {
    routes.put("/page/switches/hot", context -> flip(context, switches::hot));
    routes.put("/page/switches/shaper", context -> flip(context, switches::shaper));
  }

  private static Function<String, Answer> file(String resource, String type) {
    Answer answer = new Answer(200, type, read(resource));
    return query -> answer;
  }

  private static byte[] read(String resource) {
    try (InputStream in = Page.class.getResourceAsStream(resource)) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException("can't read " + resource, e);
    }
  }

  private Answer data(String query) {
    String after = query == null ? "after=0" : query;
    if (!after.matches("after=\\d{1,18}")) {
      String refusal = "the query must be after=NUMBER, was " + query;
      return new Answer(400, "text/plain; charset=utf-8", refusal.getBytes(UTF_8));
    }
    return after(Long.parseLong(after.substring(6)));
  }

  /** Who has seen nothing of what is kept begins anew. */
  private synchronized Answer after(long seen) {
    boolean forgotten = seen < taken - points.size();
    return answers.computeIfAbsent(forgotten ? 0 : Math.min(seen, taken), this::answer);
  }

  private Answer answer(long seen) {
    long unseen = taken - seen;
    News news =
        new News(
            startedMs,
            taken,
            newest == null ? null : newest.now(),
            newest == null || seen >= takenWhenSettingsChanged ? null : newest.settings(),
            points.stream().skip(Math.max(0, points.size() - unseen)).toList());
    return new Answer(200, "application/json", json(news));
  }

  private static byte[] json(News news) {
    try {
      return JSON.writeValueAsBytes(news);
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void flip(Context context, Consumer<Boolean> flip) {
    switch (context.body()) {
      case "true" -> flip.accept(true);
      case "false" -> flip.accept(false);
      default -> {
        context.status(HttpStatus.BAD_REQUEST).result("a switch must be true or false");
        return;
      }
    }
    context.status(HttpStatus.NO_CONTENT);
  }

  private void take() {
    try {
      keep(source.get());
    } catch (RuntimeException e) {
      LOG.warn("no snapshot for the page", e); // and the next in a second
    }
  }

  private synchronized void keep(Snapshot snapshot) {
    taken++;
    answers.clear();
    if (newest == null || !newest.settings().equals(snapshot.settings())) {
      takenWhenSettingsChanged = taken;
    }
    newest = snapshot;
    points.addLast(snapshot.point());
    if (points.size() > SECONDS_KEPT) {
      points.removeFirst();
    }
  }

  @Override
  public void close() {
    clock.shutdownNow();
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "page");
    thread.setDaemon(true);
    return thread;
  }
}
