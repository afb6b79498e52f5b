package io.streamshaper.examples;

import io.streamshaper.broker.Leftovers;
import java.io.IOException;
import java.io.Writer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** {@code shaper app} in a JVM of its own, as users run it. It ends with its parent. */
final class ChildApp implements AutoCloseable {
  private static final Pattern ADDRESS = Pattern.compile("http://127\\.0\\.0\\.1:(\\d+)");
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final Path folder;
  private final Process deleter;
  private final Process process;
  private final HttpClient http = HttpClient.newHttpClient();

  private ChildApp(Path folder, Process deleter, Process process) {
    this.folder = folder;
    this.deleter = deleter;
    this.process = process;
  }

  /** As with {@code --check}. */
  static ChildApp check(Map<String, ?> settings) throws IOException {
    return check(settings, Map.of());
  }

  static ChildApp check(Map<String, ?> settings, Map<String, String> environment)
      throws IOException {
    return launch(settings, environment, "--check");
  }

  /** Starts it. Without a port of its own it takes any; without a folder, one that goes with it. */
  static ChildApp start(Map<String, ?> settings) throws IOException {
    return start(settings, Map.of());
  }

  static ChildApp start(Map<String, ?> settings, Map<String, String> environment)
      throws IOException {
    return launch(settings, environment);
  }

  private static ChildApp launch(
      Map<String, ?> settings, Map<String, String> environment, String... options)
      throws IOException {
    Path folder = Files.createTempDirectory("shaper-app-");
    Process deleter = Leftovers.deleteAtOurEnd(folder);
    Properties properties = new Properties();
    properties.put("app.port", "0");
    properties.put("state.dir", folder.resolve("state").toString());
    settings.forEach((name, value) -> properties.put(name, value.toString()));
    Path file = folder.resolve("app.properties");
    try (Writer writer = Files.newBufferedWriter(file)) {
      properties.store(writer, null);
    }
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:+UseSerialGC", "-Xmx400m", "-Djava.io.tmpdir=" + folder));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of(ChildApp.class.getName(), "app", "--config", file.toString()));
    command.addAll(List.of(options));
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectOutput(folder.resolve("out").toFile())
            .redirectError(folder.resolve("err").toFile());
    builder.environment().putAll(environment);
    return new ChildApp(folder, deleter, builder.start());
  }

  public static void main(String[] args) {
    ChildApplication.haltWithParent();
    Main.main(args);
  }

  /** Until it serves records. */
  void awaitReady() throws Exception {
    Patience.await("the app is ready", () -> get("/health/ready").statusCode() == 200);
  }

  HttpResponse<String> get(String path) throws Exception {
    URI uri = URI.create("http://127.0.0.1:" + port() + path);
    return http.send(
        HttpRequest.newBuilder(uri).timeout(PATIENCE).build(),
        HttpResponse.BodyHandlers.ofString());
  }

  /** The sum over the series of a metric that have these tags, written as Prometheus does. */
  double metric(String name, String... tags) throws Exception {
    return get("/metrics")
        .body()
        .lines()
        .filter(
            line -> line.startsWith(name + "{") && List.of(tags).stream().allMatch(line::contains))
        .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
        .sum();
  }

  /** Where it says that it listens, which is the first that it says. */
  int port() throws Exception {
    Patience.await("the app listens", () -> !process.isAlive() || ADDRESS.matcher(err()).find());
    Matcher address = ADDRESS.matcher(err());
    if (!address.find()) {
      throw new AssertionError("ended with status " + awaitExit() + "; " + err());
    }
    return Integer.parseInt(address.group(1));
  }

  /** SIGTERM. Unlike {@link Process#destroy} it leaves our end of its input open. */
  void terminate() {
    process.toHandle().destroy();
  }

  int awaitExit() {
    return process.onExit().orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS).join().exitValue();
  }

  String out() throws IOException {
    return Files.readString(folder.resolve("out"));
  }

  String err() throws IOException {
    return Files.readString(folder.resolve("err"));
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly();
    awaitExit();
    deleter.getOutputStream().close();
    deleter.onExit().orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS).join();
  }
}
