package io.streamshaper.examples;

import java.io.IOException;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

/**
 * The broker of a test: in a container, or in a child JVM. {@code -Dshaper.broker=container} or
 * {@code process} decides; without it, whether a Docker engine answers. {@code
 * -Dshaper.broker.image} names another image.
 */
sealed interface TestBroker extends AutoCloseable {

  String bootstrapServers();

  /** It answers nobody, and keeps its connections and data, until {@link #resume}. */
  void pause() throws IOException;

  void resume();

  @Override
  void close();

  /** Starts a broker and waits until it answers. */
  static TestBroker start() throws IOException, InterruptedException {
    return start(Map.of());
  }

  /** As {@link #start()}, with server properties that win over the defaults. */
  static TestBroker start(Map<String, String> properties) throws IOException, InterruptedException {
    return Choice.CONTAINER ? new InContainer(properties) : new InProcess(Broker.start(properties));
  }

  /** Made once, and said. */
  final class Choice {
    private static final String SETTING = System.getProperty("shaper.broker", "auto");
    private static final String IMAGE =
        System.getProperty("shaper.broker.image", "apache/kafka:4.4.0");
    private static final long PATIENCE_SECONDS = 20;
    private static final boolean CONTAINER = chooseContainer();

    private Choice() {}

    private static boolean chooseContainer() {
      return switch (SETTING) {
        case "container" -> say(true, "asked for");
        case "process" -> say(false, "asked for");
        case "auto" ->
            engineAnswers()
                ? say(true, "a Docker engine answers")
                : say(false, "no Docker engine answers");
        default ->
            throw new IllegalArgumentException(
                "shaper.broker must be container, process or auto, was " + SETTING);
      };
    }

    private static boolean say(boolean container, String why) {
      String broker = container ? IMAGE + " in a container" : "a child JVM";
      System.out.println("broker: " + broker + ": " + why);
      return container;
    }

    /** In a container of its own, Testcontainers may look for the engine's address for minutes. */
    private static boolean engineAnswers() {
      // Else it reports each place where it found none as an error.
      System.setProperty("org.slf4j.simpleLogger.log.org.testcontainers.dockerclient", "off");
      return CompletableFuture.supplyAsync(DockerClientFactory.instance()::isDockerAvailable)
          .completeOnTimeout(false, PATIENCE_SECONDS, TimeUnit.SECONDS)
          .exceptionally(unusable -> false)
          .join();
    }
  }

  /** What the demo uses. */
  record InProcess(Broker broker) implements TestBroker {

    @Override
    public String bootstrapServers() {
      return broker.bootstrapServers();
    }

    @Override
    public void pause() throws IOException {
      broker.pause();
    }

    @Override
    public void resume() {
      broker.resume();
    }

    @Override
    public void close() {
      broker.close();
    }
  }

  /** What users run. */
  final class InContainer implements TestBroker {
    private final KafkaContainer container =
        new KafkaContainer(
            DockerImageName.parse(Choice.IMAGE).asCompatibleSubstituteFor("apache/kafka"));

    private InContainer(Map<String, String> properties) {
      properties.forEach((name, value) -> container.withEnv(variable(name), value));
      container.start();
    }

    /** The image's way to set a server property. */
    private static String variable(String property) {
      return "KAFKA_" + property.replace('.', '_').toUpperCase(Locale.ROOT);
    }

    @Override
    public String bootstrapServers() {
      return container.getBootstrapServers();
    }

    @Override
    public void pause() {
      container.getDockerClient().pauseContainerCmd(container.getContainerId()).exec();
    }

    @Override
    public void resume() {
      container.getDockerClient().unpauseContainerCmd(container.getContainerId()).exec();
    }

    /** A paused one too. */
    @Override
    public void close() {
      container.stop();
    }
  }
}
