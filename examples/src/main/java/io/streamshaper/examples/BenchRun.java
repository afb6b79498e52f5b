package io.streamshaper.examples;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * One topology, reading from its beginning a topic that others read too, with topics of its own for
 * what it forwards and drops. All that it makes is gone when it is closed.
 */
final class BenchRun implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final Admin admin;
  private final String bootstrapServers;
  private final String id;
  private final Acknowledged acknowledged = new Acknowledged();
  private final Properties properties = new Properties();
  private KafkaStreams streams;

  /**
   * Where the records that were read are, once the application has stopped.
   *
   * @param read by the offset that it committed
   * @param queued those that its changelog still holds
   */
  record Balance(long read, long forwarded, long dropped, long queued) {}

  /**
   * @param id of the application, and the beginning of its topics' names
   * @param config over what all runs have in common
   */
  BenchRun(Admin admin, String bootstrapServers, String id, Path stateDir, Map<String, ?> config)
      throws InterruptedException, ExecutionException {
    this.admin = admin;
    this.bootstrapServers = bootstrapServers;
    this.id = id;
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.toString());
    properties.put(StreamsConfig.POLL_MS_CONFIG, 5);
    properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    acknowledged.register(properties);
    properties.putAll(config);
    Application.createTopics(admin, List.of(out(), dropped()), 1);
  }

  static void deleteTopics(Admin admin, Collection<String> names) {
    try {
      admin.deleteTopics(names).all().get();
    } catch (ExecutionException alreadyGone) {
      return;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  String out() {
    return id + "-out";
  }

  String dropped() {
    return id + "-dropped";
  }

  /** What has reached the broker. */
  Acknowledged acknowledged() {
    return acknowledged;
  }

  void start(Topology topology) {
    streams = new KafkaStreams(topology, properties);
    streams.setUncaughtExceptionHandler(failure -> StreamThreadExceptionResponse.SHUTDOWN_CLIENT);
    streams.start();
  }

  /** False if it took too long. */
  boolean await(Duration timeout, BooleanSupplier done) throws InterruptedException {
    long deadline = System.nanoTime() + timeout.toNanos();
    while (!done.getAsBoolean()) {
      if (streams.state().hasStartedOrFinishedShuttingDown()) {
        throw new IllegalStateException(id + " must be running, was " + streams.state());
      }
      if (System.nanoTime() > deadline) {
        return false;
      }
      TimeUnit.MILLISECONDS.sleep(2);
    }
    return true;
  }

  /** Ends it with a last commit. */
  void stop() {
    if (!streams.close(
        CloseOptions.timeout(PATIENCE)
            .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP))) {
      throw new IllegalStateException(id + " must stop within " + PATIENCE);
    }
  }

  /**
   * What the topics say, once it has stopped.
   *
   * @param space the keys whose records are numbered together
   * @param leftElsewhere records that went neither to a topic nor to a store
   * @throws IllegalStateException if a record that was read is not exactly once in one place, or
   *     was overtaken by one of its key
   */
  Balance balance(Function<String, String> space, long leftElsewhere)
      throws InterruptedException, ExecutionException {
    Tally tally = new Tally(admin, bootstrapServers, space);
    long forwarded = tally.count(out());
    long dropped = tally.count(dropped()) + leftElsewhere;
    long queued = 0;
    for (String topic : topics()) {
      if (topic.endsWith(Acknowledged.CHANGELOG)) {
        queued += tally.live(topic);
      }
    }
    Balance balance = new Balance(committed(), forwarded, dropped, queued);
    List<String> violations = new ArrayList<>(tally.violations());
    if (balance.read != forwarded + dropped + queued) {
      violations.add("read = forwarded + dropped + queued must hold, was " + balance);
    }
    if (!violations.isEmpty()) {
      throw new IllegalStateException(
          "%s does not add up: %s".formatted(id, String.join("; ", violations)));
    }
    return balance;
  }

  private long committed() throws InterruptedException, ExecutionException {
    return admin
        .listConsumerGroupOffsets(id)
        .partitionsToOffsetAndMetadata()
        .get()
        .values()
        .stream()
        .mapToLong(OffsetAndMetadata::offset)
        .sum();
  }

  private List<String> topics() throws InterruptedException, ExecutionException {
    return admin.listTopics().names().get().stream()
        .filter(topic -> topic.startsWith(id + "-"))
        .toList();
  }

  @Override
  public void close() {
    if (streams != null) {
      streams.close(PATIENCE);
    }
    try {
      admin.deleteTopics(topics()).all().get();
      admin.deleteConsumerGroups(List.of(id)).all().get();
    } catch (ExecutionException alreadyGone) {
      return;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
