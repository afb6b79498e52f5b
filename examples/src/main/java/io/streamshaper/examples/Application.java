package io.streamshaper.examples;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.streamshaper.Shaped;
import io.streamshaper.Shaper;
import io.streamshaper.ShaperMetrics;
import io.streamshaper.ShaperOptions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DeleteConsumerGroupsOptions;
import org.apache.kafka.clients.admin.DeleteTopicsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;

/**
 * A Kafka Streams application of one topic in, a shaper, a step, and topics for what is forwarded
 * and dropped. It can be stopped and started again, with other options; its topics are its own.
 */
final class Application implements AutoCloseable {
  static final String SHAPER = "shaper";

  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final Duration LAST_PATIENCE = Duration.ofSeconds(5);
  private static final short ANY_REPLICATION = -1;

  private final Admin admin;
  private final String bootstrapServers;
  private final Map<String, ?> config;
  private final ProcessorSupplier<String, byte[], String, byte[]> step;
  private final String id;
  private final String in;
  private final String out;
  private final String dropped;
  private final Path stateDir;
  private final MeterRegistry meters = new SimpleMeterRegistry();
  private KafkaStreams streams;

  /**
   * Makes the topics, of one partition each.
   *
   * @param config over what suits an example
   */
  Application(
      Admin admin,
      String bootstrapServers,
      Map<String, ?> config,
      ProcessorSupplier<String, byte[], String, byte[]> step)
      throws IOException, InterruptedException, ExecutionException {
    this(admin, bootstrapServers, config, step, 1);
  }

  /** As above, with topics of more partitions. */
  Application(
      Admin admin,
      String bootstrapServers,
      Map<String, ?> config,
      ProcessorSupplier<String, byte[], String, byte[]> step,
      int partitions)
      throws IOException, InterruptedException, ExecutionException {
    this(
        admin,
        bootstrapServers,
        config,
        step,
        "shaper-%08x".formatted(ThreadLocalRandom.current().nextInt()),
        newStateDir());
    createTopics(admin, topics(), partitions);
  }

  private Application(
      Admin admin,
      String bootstrapServers,
      Map<String, ?> config,
      ProcessorSupplier<String, byte[], String, byte[]> step,
      String id,
      Path stateDir) {
    this.admin = admin;
    this.bootstrapServers = bootstrapServers;
    this.config = config;
    this.step = step;
    this.id = id;
    this.stateDir = stateDir;
    in = id + "-in";
    out = id + "-out";
    dropped = id + "-dropped";
  }

  /**
   * One whose topics are there already, and are somebody else's to remove.
   *
   * @param id see {@link #id()}
   * @param stateDir see {@link #stateDir()}; no two may use it at a time
   */
  static Application existing(
      String bootstrapServers,
      Map<String, ?> config,
      ProcessorSupplier<String, byte[], String, byte[]> step,
      String id,
      Path stateDir) {
    return new Application(null, bootstrapServers, config, step, id, stateDir);
  }

  /** Another instance of this application, with a configuration and a folder of its own. */
  Application instance(
      Map<String, ?> config, ProcessorSupplier<String, byte[], String, byte[]> step)
      throws IOException {
    return existing(bootstrapServers, config, step, id, newStateDir());
  }

  private static Path newStateDir() throws IOException {
    return Files.createTempDirectory("shaper-state");
  }

  /** A guarantee, and commits so often that a short run sees many. */
  static Map<String, Object> config(String guarantee) {
    return Map.of(
        StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
        guarantee,
        StreamsConfig.COMMIT_INTERVAL_MS_CONFIG,
        100);
  }

  /** Makes topics and waits: a broker knows them a little later than the controller does. */
  static void createTopics(Admin admin, List<String> names, int partitions)
      throws InterruptedException, ExecutionException {
    admin
        .createTopics(
            names.stream().map(name -> new NewTopic(name, partitions, ANY_REPLICATION)).toList())
        .all()
        .get();
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (!admin.listTopics().names().get().containsAll(names)) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("topics must exist within " + PATIENCE + ": " + names);
      }
      Thread.sleep(10);
    }
  }

  /** What Kafka knows it by. */
  String id() {
    return id;
  }

  /** What it keeps outside of Kafka. */
  Path stateDir() {
    return stateDir;
  }

  /** The topic that it reads. */
  String in() {
    return in;
  }

  /** The topics that it reads and writes. */
  List<String> topics() {
    return List.of(in, out, dropped);
  }

  /** What its shaper shows of itself. */
  MeterRegistry meters() {
    return meters;
  }

  /**
   * Starts it and waits until it runs.
   *
   * @param options null: without a shaper
   */
  void start(ShaperOptions options) throws InterruptedException {
    start(options, notStarted -> {});
  }

  /** As above. The caller may listen to it, and question it until it is closed. */
  void start(ShaperOptions options, Consumer<KafkaStreams> beforeStart)
      throws InterruptedException {
    KafkaStreams starting = new KafkaStreams(topology(options), properties());
    streams = starting;
    // A broker that wakes up can answer "coordinator loading", which the consumer takes for fatal.
    starting.setUncaughtExceptionHandler(failure -> StreamThreadExceptionResponse.REPLACE_THREAD);
    beforeStart.accept(starting);
    starting.start();
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (starting.state() != KafkaStreams.State.RUNNING) {
      if (System.nanoTime() > deadline || starting.state() == KafkaStreams.State.ERROR) {
        throw new IllegalStateException("application must be running, was " + starting.state());
      }
      Thread.sleep(10);
    }
  }

  /** Whether it is running or about to, and was not stopped by a failure. */
  boolean isAlive() {
    return streams != null && !streams.state().hasStartedOrFinishedShuttingDown();
  }

  /** Stops it cleanly, and leaves the group, so that a next start need not wait for its end. */
  void stop() {
    if (!leave(PATIENCE)) {
      throw new IllegalStateException("application must stop within " + PATIENCE);
    }
  }

  private boolean leave(Duration patience) {
    return streams.close(
        CloseOptions.timeout(patience)
            .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
  }

  /** Records read and committed, in all its life. */
  long committed() throws InterruptedException, ExecutionException {
    return admin
        .listConsumerGroupOffsets(id)
        .partitionsToOffsetAndMetadata()
        .get()
        .values()
        .stream()
        .mapToLong(OffsetAndMetadata::offset)
        .sum();
  }

  /** What became of the records, once it is stopped. */
  Ledger ledger() throws InterruptedException, ExecutionException {
    String changelog = id + "-" + SHAPER + "-queue-changelog";
    boolean shaped = admin.listTopics().names().get().contains(changelog);
    return Ledger.read(admin, bootstrapServers, id, in, out, dropped, shaped ? changelog : null);
  }

  /** Stops it if need be, and removes its topics, its consumer group and its folder. */
  @Override
  public void close() {
    if (streams != null) {
      leave(LAST_PATIENCE); // a group with members can't be removed
    }
    try {
      if (admin != null) {
        removeFromBroker();
      }
    } catch (ExecutionException brokerIsGone) {
      return;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      deleteStateDir();
    }
  }

  private void removeFromBroker() throws InterruptedException, ExecutionException {
    int timeoutMs = (int) LAST_PATIENCE.toMillis();
    List<String> topics =
        admin.listTopics(new ListTopicsOptions().timeoutMs(timeoutMs)).names().get().stream()
            .filter(topic -> topic.startsWith(id))
            .toList();
    admin.deleteTopics(topics, new DeleteTopicsOptions().timeoutMs(timeoutMs)).all().get();
    admin
        .deleteConsumerGroups(List.of(id), new DeleteConsumerGroupsOptions().timeoutMs(timeoutMs))
        .all()
        .get();
  }

  private Topology topology(ShaperOptions options) {
    StreamsBuilder builder = new StreamsBuilder();
    Produced<String, byte[]> produced = Produced.with(Serdes.String(), Serdes.ByteArray());
    KStream<String, byte[]> records =
        builder.stream(in, Consumed.with(Serdes.String(), Serdes.ByteArray()));
    if (options != null) {
      Shaped<String, byte[]> shaped =
          Shaper.<String, byte[]>named(SHAPER)
              .serdes(Serdes.String(), Serdes.ByteArray())
              .options(options)
              .metrics(ShaperMetrics.in(meters))
              .shape(records);
      shaped.dropped().to(dropped, produced);
      records = shaped.forwarded();
    }
    records.process(step).to(out, produced);
    return builder.build();
  }

  private Properties properties() {
    Properties properties = new Properties();
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.toString());
    properties.put(StreamsConfig.POLL_MS_CONFIG, 5);
    properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    properties.putAll(config);
    return properties;
  }

  /** Removes its folder only: for when its broker and this JVM are about to end. */
  void deleteStateDir() {
    deleteFolder(stateDir);
  }

  static void deleteFolder(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    } catch (IOException | UncheckedIOException leaveItToTheSystem) {
      return;
    }
  }
}
