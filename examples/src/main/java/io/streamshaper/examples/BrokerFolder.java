package io.streamshaper.examples;

import io.streamshaper.broker.BrokerMain;
import io.streamshaper.broker.Leftovers;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;

/** A broker's temporary folder: its class path, settings and log, and its data if they may go. */
final class BrokerFolder {

  private static final int LOG_LINES_SHOWN = 20;

  private static final Duration DELETE_TIMEOUT = Duration.ofSeconds(30);

  private final Path path;
  private final Process deleter;

  private BrokerFolder(Path path) throws IOException {
    this.path = path;
    this.deleter = Leftovers.deleteAtOurEnd(path);
  }

  static BrokerFolder create() throws IOException {
    return new BrokerFolder(Files.createTempDirectory("shaper-broker-"));
  }

  Path path() {
    return path;
  }

  Path data() {
    return path.resolve("data");
  }

  Path log() {
    return path.resolve("broker.log");
  }

  /** The jars that {@link #copyJars} brought, and our own classes. */
  String classPath() {
    return path + ":" + path.resolve("broker") + "/*";
  }

  /** The jars lie as resources in shaper-broker's jar: a JVM can't run them there. */
  void copyJars() throws IOException {
    for (String jar : index().split(",", -1)) {
      copy(jar);
    }
    copy(fileOf(BrokerMain.class));
    copy(fileOf(Leftovers.class));
  }

  private static String index() throws IOException {
    try (InputStream in = resource("broker/index")) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8).strip();
    }
  }

  private static String fileOf(Class<?> type) {
    return type.getName().replace('.', '/') + ".class";
  }

  private void copy(String name) throws IOException {
    Path target = path.resolve(name);
    Files.createDirectories(target.getParent());
    try (InputStream in = resource(name)) {
      Files.copy(in, target);
    }
  }

  private static InputStream resource(String name) throws IOException {
    InputStream in = BrokerFolder.class.getClassLoader().getResourceAsStream(name);
    if (in == null) {
      throw new FileNotFoundException(name + " is not on the class path: Maven puts it there");
    }
    return in;
  }

  void writeProperties(Map<String, String> settings) throws IOException {
    Properties properties = new Properties();
    properties.putAll(settings);
    try (Writer out = Files.newBufferedWriter(path.resolve("server.properties"))) {
      properties.store(out, null);
    }
  }

  String logTail() throws IOException {
    List<String> lines = Files.readAllLines(log());
    return String.join(
        "\n", lines.subList(Math.max(0, lines.size() - LOG_LINES_SHOWN), lines.size()));
  }

  /** Bounded. Does nothing the second time. */
  void delete() {
    try {
      deleter.getOutputStream().close();
    } catch (IOException e) {
      throw new UncheckedIOException("can't delete the broker's folder " + path, e);
    }
    deleter.onExit().orTimeout(DELETE_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS).join();
  }
}
