package io.streamshaper.examples;

import io.streamshaper.broker.BrokerMain;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.DescribeClusterOptions;

/**
 * A real Kafka broker in a child JVM, so that it can be killed and none of its jars is on our class
 * path. It ends with this JVM, however this ends, and leaves nothing behind: {@link #close} and the
 * shutdown hook see to it; when this JVM is killed, {@link BrokerMain} and a shell notice.
 */
final class Broker implements AutoCloseable {

  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();
  private static final Duration READY_TIMEOUT = Duration.ofSeconds(60);
  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(30);
  private static final int PORT_ATTEMPTS = 5;
  private static final String LISTENERS = "listeners";

  /** One node that is all there is; members join at once, a killed broker is soon let back in. */
  private static final Map<String, String> DEFAULTS =
      Map.ofEntries(
          Map.entry("process.roles", "broker,controller"),
          Map.entry("node.id", "1"),
          Map.entry("controller.listener.names", "CONTROLLER"),
          Map.entry("offsets.topic.replication.factor", "1"),
          Map.entry("transaction.state.log.replication.factor", "1"),
          Map.entry("transaction.state.log.min.isr", "1"),
          Map.entry("share.coordinator.state.topic.replication.factor", "1"),
          Map.entry("share.coordinator.state.topic.min.isr", "1"),
          Map.entry("group.initial.rebalance.delay.ms", "0"),
          Map.entry("broker.session.timeout.ms", "1500"),
          Map.entry("broker.heartbeat.interval.ms", "300"));

  private final BrokerFolder folder;
  private final Map<String, String> settings = new HashMap<>(DEFAULTS);
  private final Map<String, String> extraSettings;
  private final Thread endAtExit = new Thread(this::end, "broker-end");
  private int port;
  private Process process;
  private Process pause;

  private Broker(Map<String, String> extraSettings, BrokerFolder folder, Path data) {
    this.extraSettings = Map.copyOf(extraSettings);
    this.folder = folder;
    settings.put("log.dirs", data.toAbsolutePath().toString());
    Runtime.getRuntime().addShutdownHook(endAtExit);
  }

  /** Starts a broker and waits until it answers. */
  static Broker start() throws IOException, InterruptedException {
    return start(Map.of());
  }

  /**
   * As {@link #start()}, with server properties that win over ours; listeners are added to ours.
   */
  static Broker start(Map<String, String> properties) throws IOException, InterruptedException {
    BrokerFolder folder = BrokerFolder.create();
    return start(new Broker(properties, folder, folder.data()));
  }

  /** As {@link #start(Map)}, in a data folder that may have data already, and is kept. */
  static Broker start(Map<String, String> properties, Path data)
      throws IOException, InterruptedException {
    return start(new Broker(properties, BrokerFolder.create(), data));
  }

  private static Broker start(Broker broker) throws IOException, InterruptedException {
    boolean started = false;
    try {
      broker.copyJars();
      broker.launchOnFreePorts();
      started = true;
      return broker;
    } finally {
      if (!started) {
        broker.close();
      }
    }
  }

  String bootstrapServers() {
    return address(port);
  }

  long pid() {
    return process.pid();
  }

  /** Where everything of the broker is, gone after {@link #close}. */
  Path folder() {
    return folder.path();
  }

  /** SIGKILL. The data stay. */
  synchronized void kill() {
    process.destroyForcibly();
    awaitExit(process);
    resume();
  }

  /** Starts it again, killing it if need be, on the same ports and data; waits until it answers. */
  void restart() throws IOException, InterruptedException {
    kill();
    launch();
    awaitReady();
  }

  /**
   * SIGSTOP, until {@link #resume}. The shell that sends it waits for the end of its input: should
   * this JVM die meanwhile, the broker wakes up and can end too.
   */
  synchronized void pause() throws IOException {
    resume();
    String script = "kill -STOP $0 && echo stopped && read -r end; kill -CONT $0";
    pause =
        new ProcessBuilder("sh", "-c", script, Long.toString(pid()))
            .redirectError(Redirect.DISCARD)
            .start();
    if (pause.getInputStream().read() < 0) {
      throw new IllegalStateException("can't pause the broker: process " + pid() + " has ended");
    }
  }

  /** SIGCONT, if paused. */
  synchronized void resume() {
    if (pause == null) {
      return;
    }
    try {
      pause.getOutputStream().close();
    } catch (IOException e) {
      throw new UncheckedIOException("can't resume the broker", e);
    }
    awaitExit(pause);
    pause = null;
  }

  /** Ends it by SIGKILL: data that go need no clean shutdown, and data that stay survive it. */
  @Override
  public void close() {
    end();
    try {
      Runtime.getRuntime().removeShutdownHook(endAtExit);
    } catch (IllegalStateException exiting) {
      // Then the hook runs, and finds nothing left to do.
    }
  }

  private synchronized void end() {
    if (process != null) {
      kill();
    }
    folder.delete();
  }

  private static void awaitExit(Process process) {
    process.onExit().orTimeout(STOP_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS).join();
  }

  private synchronized void copyJars() throws IOException {
    folder.copyJars();
  }

  private void launchOnFreePorts() throws IOException, InterruptedException {
    for (int attempt = 1; !launchOn(freePort(), freePort()); attempt++) {
      if (attempt == PORT_ATTEMPTS) {
        throw new IllegalStateException(
            "the broker found its ports taken " + attempt + " times" + logTail());
      }
    }
  }

  /** False if somebody else took one of the ports between our look and the broker's. */
  private boolean launchOn(int port, int controllerPort) throws IOException, InterruptedException {
    this.port = port;
    String controller = address(controllerPort);
    String listeners = "PLAINTEXT://" + address(port) + ",CONTROLLER://" + controller;
    settings.put("controller.quorum.voters", "1@" + controller);
    settings.putAll(extraSettings);
    String more = extraSettings.get(LISTENERS);
    settings.put(LISTENERS, more == null ? listeners : listeners + "," + more);
    folder.writeProperties(settings);
    launch();
    try {
      awaitReady();
      return true;
    } catch (IllegalStateException e) {
      if (e.getMessage().contains("Address already in use")) {
        return false;
      }
      throw e;
    }
  }

  private synchronized void launch() throws IOException {
    Path java = Path.of(System.getProperty("java.home"), "bin", "java");
    process =
        new ProcessBuilder(
                java.toString(),
                "-Xmx512m",
                "-Dlog4j2.level=INFO",
                "-cp",
                folder.classPath(),
                BrokerMain.class.getName(),
                folder.path().toString())
            .redirectErrorStream(true)
            .redirectOutput(Redirect.appendTo(folder.log().toFile()))
            .start();
  }

  private void awaitReady() throws IOException, InterruptedException {
    long startNanos = System.nanoTime();
    while (!isReady()) {
      if (process.waitFor(20, TimeUnit.MILLISECONDS)) {
        throw new IllegalStateException(
            "the broker ended with status " + process.exitValue() + logTail());
      }
      if (System.nanoTime() - startNanos > READY_TIMEOUT.toNanos()) {
        throw new IllegalStateException("the broker was not ready in " + READY_TIMEOUT + logTail());
      }
    }
  }

  private String logTail() throws IOException {
    return "; its log ends with:\n" + folder.logTail();
  }

  /** Tries the port first: an admin client logs a warning each time that nobody listens. */
  private boolean isReady() throws InterruptedException {
    return isListening() && answers();
  }

  private boolean isListening() {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress(LOOPBACK, port), 1_000);
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private boolean answers() throws InterruptedException {
    DescribeClusterOptions options = new DescribeClusterOptions().timeoutMs(2_000);
    Map<String, Object> config =
        Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers());
    try (Admin admin = Admin.create(config)) {
      return !admin.describeCluster(options).nodes().get().isEmpty();
    } catch (ExecutionException e) {
      return false;
    }
  }

  private static String address(int port) {
    return LOOPBACK.getHostAddress() + ":" + port;
  }

  /**
   * A port below those that the system hands out itself (Linux: from 32768). A client that tries to
   * reach a killed broker might be given the broker's port for its own end, and keep the broker
   * from coming back on it.
   */
  static int freePort() throws IOException {
    for (int attempt = 1; ; attempt++) {
      int port = ThreadLocalRandom.current().nextInt(10_000, 32_768);
      try (ServerSocket socket = new ServerSocket(port, 1, LOOPBACK)) {
        return socket.getLocalPort();
      } catch (IOException e) {
        if (attempt == 100) {
          throw new IOException("no free port on " + LOOPBACK, e);
        }
      }
    }
  }
}
