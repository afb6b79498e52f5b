package io.streamshaper.examples;

import io.streamshaper.ShaperOptions;
import io.streamshaper.broker.Leftovers;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

/** An {@link Application} in a JVM of its own, which can be killed, and ends with its parent. */
final class ChildApplication implements AutoCloseable {
  /** What each record costs the step. */
  static final String CALL_MICROS = "call.micros";

  /** What a broker must allow. */
  static final Map<String, String> BROKER_SETTINGS =
      Map.of(
          "group.min.session.timeout.ms",
          "1000",
          "transaction.abort.timed.out.transaction.cleanup.interval.ms",
          "200");

  /** That its group and its transaction are soon over when it has been killed. */
  private static final Map<String, String> SOON_FORGOTTEN =
      Map.of(
          ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG,
          "2500",
          ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG,
          "500",
          ProducerConfig.TRANSACTION_TIMEOUT_CONFIG,
          "4000");

  private static final String BOOTSTRAP = "bootstrap.servers";
  private static final String ID = "application.id";
  private static final String STATE_DIR = "state.dir";
  private static final String RUNNING = "running";
  private static final Pattern RESTORED = Pattern.compile("(\\d+) records restored");
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  /** Of no use after a second's life: a second compiler, a large heap, a parallel collector. */
  private static final List<String> LIGHT =
      List.of(
          "-Xshare:auto",
          "-XX:TieredStopAtLevel=1",
          "-XX:+UseSerialGC",
          "-XX:-UsePerfData",
          "-Xmx256m");

  private final Path folder;
  private final Process deleter;
  private final Process process;
  private final BufferedReader out;

  private ChildApplication(Path folder, Process deleter, Process process) {
    this.folder = folder;
    this.deleter = deleter;
    this.process = process;
    out = process.inputReader(StandardCharsets.UTF_8);
  }

  /**
   * Starts one more instance of an application that does not run in this JVM.
   *
   * @param settings of Kafka Streams and the shaper, and {@link #CALL_MICROS}
   */
  static ChildApplication start(
      String bootstrapServers, Application application, Map<String, ?> settings)
      throws IOException {
    Properties properties = new Properties();
    properties.putAll(SOON_FORGOTTEN);
    settings.forEach((name, value) -> properties.put(name, value.toString()));
    properties.put(BOOTSTRAP, bootstrapServers);
    properties.put(ID, application.id());
    properties.put(STATE_DIR, application.stateDir().toString());
    Path folder = Files.createTempDirectory("shaper-child-");
    Process deleter = Leftovers.deleteAtOurEnd(folder);
    Path file = folder.resolve("properties");
    try (Writer writer = Files.newBufferedWriter(file)) {
      properties.store(writer, null);
    }
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(LIGHT);
    command.add("-Djava.io.tmpdir=" + folder);
    command.add("-Dorg.slf4j.simpleLogger.log.io.streamshaper=info");
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of(ChildApplication.class.getName(), file.toString()));
    Process process =
        new ProcessBuilder(command).redirectError(folder.resolve("log").toFile()).start();
    return new ChildApplication(folder, deleter, process);
  }

  void awaitRunning() throws Exception {
    String line =
        CompletableFuture.supplyAsync(this::readLine).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    if (!RUNNING.equals(line)) {
      throw new AssertionError("must be running, was ending; " + log());
    }
  }

  /** SIGKILL. */
  void kill() throws IOException {
    if (!process.isAlive()) {
      throw new AssertionError("ended with status " + process.exitValue() + "; " + log());
    }
    process.destroyForcibly();
    awaitExit();
  }

  /** Waits until it has ended by itself, and returns its status. */
  int awaitExit() {
    return process.onExit().orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS).join().exitValue();
  }

  /** Records that were queued when it began to run. */
  long restored() throws IOException {
    Matcher restored = RESTORED.matcher(log());
    long records = 0;
    while (restored.find()) {
      records += Long.parseLong(restored.group(1));
    }
    return records;
  }

  String log() throws IOException {
    return Files.readString(folder.resolve("log"));
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly();
    awaitExit();
    out.close();
    deleter.getOutputStream().close();
    deleter.onExit().orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS).join();
  }

  private String readLine() {
    try {
      return out.readLine();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Its one argument is a file of settings. */
  public static void main(String[] args) throws Exception {
    haltWithParent();
    Properties properties = new Properties();
    try (var reader = Files.newBufferedReader(Path.of(args[0]))) {
      properties.load(reader);
    }
    Map<String, String> config = new HashMap<>();
    properties.stringPropertyNames().stream()
        .filter(name -> !name.startsWith("shaper.") && !name.equals(CALL_MICROS))
        .forEach(name -> config.put(name, properties.getProperty(name)));
    long nanos =
        TimeUnit.MICROSECONDS.toNanos(Long.parseLong(properties.getProperty(CALL_MICROS, "0")));
    Application application =
        Application.existing(
            config.get(BOOTSTRAP),
            config,
            new Step(nanos == 0 ? () -> {} : Step.Call.blocking(nanos))::processor,
            config.get(ID),
            Path.of(config.get(STATE_DIR)));
    application.start(ShaperOptions.from(properties));
    System.out.println(RUNNING);
    while (application.isAlive()) {
      TimeUnit.MILLISECONDS.sleep(10);
    }
    System.err.println("the application has stopped by itself");
    Runtime.getRuntime().halt(1);
  }

  /** The parent holds the other end of our input and writes nothing. */
  static void haltWithParent() {
    Thread watch =
        new Thread(
            () -> {
              try (var in = new InputStreamReader(System.in, StandardCharsets.UTF_8)) {
                while (in.read() >= 0) {}
              } catch (IOException e) {
                System.err.println("parent lost: " + e);
              } finally {
                Runtime.getRuntime().halt(1);
              }
            },
            "parent-watch");
    watch.setDaemon(true);
    watch.start();
  }
}
