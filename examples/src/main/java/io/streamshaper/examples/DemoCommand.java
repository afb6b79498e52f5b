package io.streamshaper.examples;

import io.javalin.util.JavalinBindException;
import io.streamshaper.ShaperOptions;
import io.streamshaper.examples.http.HttpServer;
import io.streamshaper.examples.page.Page;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.admin.Admin;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Shows what the shaper does to a hot key and to quiet ones, on a real broker. */
@Command(
    name = "demo",
    description = {
      "Show a hot key and 50 quiet ones, without and with the shaper, on a real broker.",
      "Exit status 0 only if every record is accounted for.",
      "With --live: a web page, with switches for the hot key and the shaper, until Ctrl-C."
    },
    mixinStandardHelpOptions = true)
final class DemoCommand implements Callable<Integer> {
  private static final int CAPACITY = 1000;
  private static final DemoRun.Rates RATES = new DemoRun.Rates(5.0 * CAPACITY, 50, 5);
  private static final long CALL_NANOS = Duration.ofSeconds(1).toNanos() / CAPACITY;
  private static final int DEFAULT_SECONDS = 20;
  private static final Duration WARM_UP = Duration.ofSeconds(10);
  private static final String LOOPBACK = "127.0.0.1";

  private static final String ROW = "%-15s %9s %9s %9s %9s %7s %7s %7s";

  @Spec private CommandSpec spec;

  @Option(
      names = "--bootstrap-server",
      paramLabel = "HOST:PORT",
      description = "Use this broker; default: start one, and stop it in the end.")
  private String bootstrapServer;

  @Option(
      names = "--seconds",
      paramLabel = "N",
      description = "How long each of the four runs takes, 4 to 3600 (default: 20).")
  private Integer seconds;

  @Option(
      names = "--live",
      description = "Show it on a web page of this machine instead, until Ctrl-C.")
  private boolean live;

  @Option(
      names = "--port",
      paramLabel = "N",
      description = "Port of the web page, 0 to 65535 (default: 0, any that is free).")
  private Integer port;

  private final List<String> violations = new ArrayList<>();
  private volatile Runnable cleanUp = () -> {};

  @Override
  public Integer call() throws Exception {
    checkOptions();
    if (bootstrapServer != null) {
      return demonstrate(bootstrapServer);
    }
    say("Starting a broker ...");
    try (Broker broker = Broker.start()) {
      return demonstrate(broker.bootstrapServers());
    }
  }

  private void checkOptions() {
    if (live) {
      require(seconds == null, "--seconds must come without --live, was %s", seconds);
      require(
          port == null || (port >= 0 && port <= 65535),
          "--port must be between 0 and 65535, was %s",
          port);
    } else {
      require(port == null, "--port must come with --live, was %s without", port);
      require(
          seconds == null || (seconds >= 4 && seconds <= 3600),
          "--seconds must be between 4 and 3600, was %s",
          seconds);
    }
  }

  private void require(boolean holds, String rule, Object value) {
    if (!holds) {
      throw new ParameterException(spec.commandLine(), rule.formatted(value));
    }
  }

  private int demonstrate(String servers) throws Exception {
    Thread atExit = new Thread(() -> cleanUp.run(), "demo-clean-up");
    try (Admin admin = BrokerAdmin.of(spec.commandLine(), servers)) {
      Runtime.getRuntime().addShutdownHook(atExit);
      if (live) {
        showLive(admin, servers);
      } else {
        demonstrate(admin, servers);
      }
      Runtime.getRuntime().removeShutdownHook(atExit);
    }
    return report();
  }

  /** Until this thread is interrupted, or the JVM ends. */
  private void showLive(Admin admin, String servers) throws Exception {
    ShaperOptions rate = ShaperOptions.builder().rate(CAPACITY).build();
    try (LiveRun run = new LiveRun(admin, servers, Step.Call.limited(CAPACITY), rate, RATES)) {
      cleanUp = bootstrapServer == null ? run::abandon : run::close;
      say("Warming up for %d s ...", WARM_UP.toSeconds());
      run.start(WARM_UP);
      try (HttpServer server = serve(run.page())) {
        say("http://%s:%d/ shows it, until Ctrl-C.", LOOPBACK, server.port());
        new CountDownLatch(1).await();
      }
    } finally {
      cleanUp = () -> {};
    }
  }

  private HttpServer serve(Page page) {
    int wanted = port == null ? 0 : port;
    try {
      return HttpServer.start(LOOPBACK, wanted, page.answers(), page::addRoutes);
    } catch (JavalinBindException e) {
      throw new ParameterException(spec.commandLine(), "--port must be free, was " + wanted);
    }
  }

  private void demonstrate(Admin admin, String servers) throws Exception {
    int length = seconds == null ? DEFAULT_SECONDS : seconds;
    ShaperOptions rate = ShaperOptions.builder().rate(CAPACITY).build();
    ShaperOptions noRate = ShaperOptions.defaults();

    run(
        admin,
        servers,
        "warming up",
        Step.Call.blocking(CALL_NANOS),
        noRate,
        (int) WARM_UP.toSeconds());

    DemoRun.Result plain =
        run(admin, servers, "without shaper", Step.Call.limited(CAPACITY), null, length);
    DemoRun.Result shaped =
        run(admin, servers, "with shaper", Step.Call.limited(CAPACITY), rate, length);
    say("");
    say("1. A service that takes %,d records/s; shaper with rate %,d", CAPACITY, CAPACITY);
    table(plain, shaped);
    say(
        "   leaves %,.0f/s (%+.1f %% of the rate), the hot key has %,.0f/s of it",
        shaped.perSecond(),
        100 * (shaped.perSecond() / CAPACITY - 1),
        shaped.perSecond() - RATES.quietPerSecond() * RATES.quietKeys());
    say("");

    plain = run(admin, servers, "without shaper", Step.Call.blocking(CALL_NANOS), null, length);
    shaped = run(admin, servers, "with shaper", Step.Call.blocking(CALL_NANOS), noRate, length);
    say("");
    say("2. The step is the bottleneck, a blocking call of 1 ms; shaper without a rate");
    table(plain, shaped);
    say(
        "   the step is busy %.0f %% of the time, without the shaper %.0f %%",
        100 * shaped.busy(), 100 * plain.busy());
    say("");

    say("3. The founding experiment: a ping every 200 ms beside a flood, in virtual time");
    say(
        "   pings lost: %.1f %% with CoDel as Linux had it, %.1f %% with the shaper's",
        percent(FoundingExperiment.lostBefore()), percent(FoundingExperiment.lostAfter()));
    say("");
  }

  private DemoRun.Result run(
      Admin admin, String servers, String label, Step.Call call, ShaperOptions options, int length)
      throws Exception {
    try (DemoRun run = new DemoRun(admin, servers, call, options, RATES)) {
      cleanUp = bootstrapServer == null ? run::abandon : run::close;
      DemoRun.Result result =
          run.run(
              length,
              second ->
                  progress(
                      "%-15s %3d/%d s   sent %,9d   forwarded %,8d",
                      label, second, length, run.sent(), run.forwarded()));
      result.violations().forEach(violation -> violations.add(label + ": " + violation));
      return result;
    } finally {
      cleanUp = () -> {};
    }
  }

  private void table(DemoRun.Result plain, DemoRun.Result shaped) {
    say(ROW, "", "sent", "forwarded", "dropped", "waiting", "p50", "p99", "max ms");
    row("without: hot", plain.hot(), plain.hotDelayMs());
    row("       quiet", plain.quiet(), plain.quietDelayMs());
    row("with:    hot", shaped.hot(), shaped.hotDelayMs());
    row("       quiet", shaped.quiet(), shaped.quietDelayMs());
    say("   hot key dropped by reason: %s", reasons(shaped.hot()));
  }

  private void row(String label, Ledger.Account account, Histogram delayMs) {
    say(
        ROW,
        label,
        number(account.sent()),
        number(account.forwarded()),
        number(account.dropped()),
        number(account.queued() + account.unread()),
        number(delayMs.getValueAtPercentile(50)),
        number(delayMs.getValueAtPercentile(99)),
        number(delayMs.getMaxValue()));
  }

  private int report() {
    if (violations.isEmpty()) {
      say("Every record is accounted for: sent = forwarded + dropped + waiting.");
      return 0;
    }
    say("NOT every record is accounted for:");
    violations.stream().limit(20).forEach(violation -> say("   %s", violation));
    return 1;
  }

  private static String reasons(Ledger.Account account) {
    return account.reasons().isEmpty()
        ? "none"
        : account.reasons().entrySet().stream()
            .map(reason -> reason.getKey() + " " + number(reason.getValue()))
            .collect(Collectors.joining(", "));
  }

  private static double percent(int pings) {
    return 100.0 * pings / FoundingExperiment.PINGS;
  }

  private static String number(long value) {
    return "%,d".formatted(value);
  }

  private void say(String format, Object... args) {
    PrintWriter out = spec.commandLine().getOut();
    out.printf(format + "%n", args);
    out.flush();
  }

  /** One line, over and over, on a terminal; a line every five seconds elsewhere. */
  private void progress(String format, Object... args) {
    int second = (int) args[1];
    if (Help.Ansi.AUTO.enabled()) {
      PrintWriter out = spec.commandLine().getOut();
      out.printf("\r" + format + (second == (int) args[2] ? "%n" : ""), args);
      out.flush();
    } else if (second % 5 == 0 || second == (int) args[2]) {
      say(format, args);
    }
  }
}
