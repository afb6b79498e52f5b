package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The app as users run it: a file, a process, topics, HTTP. */
@Timeout(240)
class AppIT {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final long DAY_MS = Duration.ofDays(1).toMillis();

  private static TestBroker broker;
  private static Admin admin;

  private final String id = "app-%08x".formatted(ThreadLocalRandom.current().nextInt());
  private final String in = id + "-in";
  private final String out = id + "-out";
  private final String dropped = id + "-dropped";
  private final Map<String, Object> settings = new HashMap<>();

  /** Late to let the first member in: so long an app is not ready. */
  @BeforeAll
  static void startBroker() throws Exception {
    broker = TestBroker.start(Map.of("group.initial.rebalance.delay.ms", "2000"));
    admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()));
  }

  @AfterAll
  static void stopBroker() {
    admin.close();
    broker.close();
  }

  @BeforeEach
  void createTopics() throws Exception {
    admin
        .createTopics(
            Stream.of(in, out, dropped).map(topic -> new NewTopic(topic, 1, (short) 1)).toList())
        .all()
        .get();
    Patience.await(
        "the topics are there",
        () -> admin.listTopics().names().get().containsAll(List.of(in, out, dropped)));
    settings.put("bootstrap.servers", broker.bootstrapServers());
    settings.put("application.id", id);
    settings.put("input.topic", in);
    settings.put("output.topic", out);
    settings.put("dropped.topic", dropped);
    settings.put("commit.interval.ms", 100);
  }

  @AfterEach
  void deleteTopics() throws Exception {
    admin.deleteTopics(List.of(in, out, dropped)).all().get();
  }

  @ParameterizedTest
  @ValueSource(strings = {"without a rate", "through the queue"})
  void everyRecordComesOutAsItWentIn(String how) throws Exception {
    if (how.equals("through the queue")) {
      settings.put("shaper.rate", 20);
      settings.put("shaper.burst", 1);
    }
    settings.put("shaper.target.ms", DAY_MS);
    settings.put("shaper.interval.ms", 2 * DAY_MS);
    byte[] anything = new byte[64];
    ThreadLocalRandom.current().nextBytes(anything);
    long now = System.currentTimeMillis();
    List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
    for (long timestamp : new long[] {0, 1, now, now - 2 * DAY_MS}) {
      sent.add(record(timestamp, null, null));
      sent.add(record(timestamp, null, anything));
      sent.add(record(timestamp, anything, null));
      sent.add(record(timestamp, new byte[0], new byte[0]));
      var record = record(timestamp, bytes("k"), bytes("v"));
      record.headers().add("same", bytes("1")).add("", null).add("same", anything);
      sent.add(record);
    }
    try (ChildApp app = ChildApp.start(settings)) {
      app.awaitReady();
      send(sent);

      assertThat(read(out, sent.size()))
          .extracting(
              record -> seen(record.timestamp(), record.key(), record.value(), record.headers()))
          .containsExactlyInAnyOrderElementsOf(
              sent.stream()
                  .map(
                      record ->
                          seen(record.timestamp(), record.key(), record.value(), record.headers()))
                  .toList());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"json:/customer/id", "header:tenant"})
  void aFloodHarmsOnlyItsOwnFlow(String flow) throws Exception {
    settings.put("app.flow", flow);
    settings.put("shaper.rate", 200);
    settings.put("shaper.target.ms", 20);
    settings.put("shaper.interval.ms", 100);
    try (ChildApp app = ChildApp.start(settings)) {
      app.awaitReady();
      List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
      for (int i = 0; i < 1000; i++) {
        sent.add(record("hot"));
      }
      for (int i = 0; i < 10; i++) {
        sent.add(record("quiet " + i));
      }
      for (int i = 0; i < 7; i++) {
        sent.add(new ProducerRecord<>(in, bytes("key " + i), bytes("neither")));
      }
      send(sent);
      Patience.await(
          "all has left",
          () ->
              app.metric("shaper_records_total", "outcome=\"received\"") == sent.size()
                  && app.metric("shaper_queued_records") == 0);

      double forwarded = app.metric("shaper_records_total", "outcome=\"forwarded\"");
      double drops = app.metric("shaper_records_total", "outcome=\"dropped\"");
      assertThat(forwarded + drops).as("the law, at a scrape").isEqualTo(sent.size());
      assertThat(drops).isPositive();
      assertThat(app.metric("shaper_flow_shared_records_total")).isEqualTo(7);
      assertThat(read(dropped, (int) drops))
          .allSatisfy(
              record ->
                  assertThat(record.headers().lastHeader("shaper.flow").value())
                      .as("the flow that was cut")
                      .isIn(bytes("hot"), null));
      assertThat(read(out, (int) forwarded))
          .extracting(record -> new String(record.value(), StandardCharsets.UTF_8))
          .contains(
              Stream.iterate(0, i -> i < 10, i -> i + 1).map(AppIT::quiet).toArray(String[]::new));
    }
  }

  @Test
  void isReadyOnlyWhenItRunsAndAliveAllTheTime() throws Exception {
    try (ChildApp app = ChildApp.start(settings)) {
      assertThat(app.get("/health/ready").statusCode()).isEqualTo(503);
      assertThat(app.get("/health/live").statusCode()).isEqualTo(200);
      app.awaitReady();
      assertThat(app.get("/health/live").statusCode()).isEqualTo(200);
      assertThat(app.get("/metrics").headers().firstValue("Content-Type"))
          .contains("text/plain; version=0.0.4; charset=utf-8");
      assertThat(app.get("/metrics").body())
          .contains("shaper_queued_records{")
          .doesNotContain("NaN");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2})
  void sigtermUnderLoadStopsItCleanlyAndLosesNothing(String guarantee) throws Exception {
    settings.put("processing.guarantee", guarantee);
    settings.put("shaper.rate", 300);
    try (ChildApp app = ChildApp.start(settings);
        BackgroundLoad load =
            new BackgroundLoad(new Load(broker.bootstrapServers(), in, 1000, 20, 5))) {
      app.awaitReady();
      Patience.await("some are queued", () -> app.metric("shaper_queued_records") > 50);

      long start = System.nanoTime();
      app.terminate();
      int status = app.awaitExit();

      System.out.printf(
          "SIGTERM, %s: ended after %d ms%n",
          guarantee, TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
      load.stop();
      assertThat(status).isEqualTo(128 + 15);
      assertThat(app.err().lines().toList()).last().asString().endsWith("AppRun - stopped");
      Ledger ledger =
          Ledger.read(
              admin,
              broker.bootstrapServers(),
              id,
              in,
              out,
              dropped,
              id + "-shaper-queue-changelog");
      assertThat(ledger.violations(Guarantee.EXACTLY_ONCE)).as("after a clean stop").isEmpty();
      Ledger.Account total = ledger.total(key -> true);
      assertThat(total.queued()).isPositive();
      assertThat(total.forwarded()).isPositive();
      assertThat(total.forwarded() + total.dropped() + total.queued() + total.unread())
          .isEqualTo(total.sent());
    }
  }

  @Test
  void whatWasQueuedIsThereAfterARestart() throws Exception {
    settings.put("shaper.rate", 0.01);
    settings.put("shaper.burst", 1);
    settings.put("shaper.target.ms", DAY_MS);
    settings.put("shaper.interval.ms", 2 * DAY_MS);
    List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      sent.add(record("customer " + i));
    }
    try (ChildApp app = ChildApp.start(settings)) {
      app.awaitReady();
      send(sent);
      Patience.await(
          "all is read", () -> app.metric("shaper_records_total", "\"received\"") == 100);
      Patience.await("most is queued", () -> app.metric("shaper_queued_records") > 90);
      app.terminate();
      app.awaitExit();
      assertThat(app.err()).doesNotContain("not stopped");
    }
    settings.put("shaper.rate", 100);
    try (ChildApp app = ChildApp.start(settings)) {
      app.awaitReady();
      assertThat(app.metric("shaper_records_total", "\"restored\"")).isGreaterThan(90);
      read(out, sent.size());
    }
  }

  @Test
  void aMissingTopicIsOneLine() throws Exception {
    settings.put("output.topic", id + "-none");
    refuses("output.topic must be a topic that exists, was " + id + "-none");
  }

  @Test
  void aTopicWhoseNameCannotBeIsOneLine() throws Exception {
    settings.put("input.topic", "no topic");
    refuses("input.topic must be a topic that exists, was no topic");
  }

  @Test
  void aPortInUseIsOneLine() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      settings.put("app.port", taken.getLocalPort());
      refuses("app.bind and app.port must be", "that are free, was 127.0.0.1:");
    }
  }

  @Test
  void anAddressOfAnotherMachineIsOneLine() throws Exception {
    settings.put("app.bind", "192.0.2.1");
    refuses("app.bind and app.port must be", "was 192.0.2.1:0");
  }

  @Test
  void aStoreFolderInUseIsOneLine(@TempDir Path folder) throws Exception {
    settings.put("state.dir", folder);
    settings.put("shaper.store", "rocksdb");
    try (ChildApp app = ChildApp.start(settings)) {
      app.awaitReady();
      refuses("Unable to initialize state", folder.toString());
      assertThat(app.get("/health/ready").statusCode()).isEqualTo(200);
    }
  }

  /** Nothing of theirs is on the disk: nothing to be in each other's way with. */
  @Test
  void memoryStoresShareAFolder(@TempDir Path folder) throws Exception {
    settings.put("state.dir", folder);
    try (ChildApp app = ChildApp.start(settings);
        ChildApp other = ChildApp.start(settings)) {
      app.awaitReady();
      other.awaitReady();
      assertThat(folder).isEmptyDirectory();
    }
  }

  @Test
  void aThreadThatFailsAgainAndAgainIsReplacedAFewTimesThenTheAppEnds() throws Exception {
    settings.put("producer.max.request.size", 1000);
    settings.put("session.timeout.ms", 6000); // so long the group waits for a thread that failed
    try (ChildApp app = ChildApp.start(settings)) {
      app.awaitReady();
      send(List.of(record(System.currentTimeMillis(), null, new byte[2000])));
      assertThat(app.awaitExit()).isEqualTo(1);
      List<String> ours = app.err().lines().filter(line -> line.contains("AppRun - ")).toList();
      assertThat(ours).filteredOn(line -> line.contains("a stream thread is replaced")).hasSize(3);
      assertThat(ours.get(ours.size() - 2))
          .contains("stream threads fail again and again, so the application ends: ")
          .contains("max.request.size");
      assertThat(ours).last().asString().endsWith("AppRun - stopped");
    }
  }

  @Test
  void checkStartsNothing() throws Exception {
    // Its group would be there had it started.
    try (ChildApp app = ChildApp.check(settings)) {
      assertThat(app.awaitExit()).isZero();
      assertThat(app.err()).isEmpty();
      assertThat(app.out().lines())
          .last()
          .asString()
          .endsWith(": good, and all 3 topics are there");
      assertThat(admin.listGroups().all().get()).noneMatch(group -> group.groupId().equals(id));
    }
  }

  private void refuses(String... parts) throws IOException {
    try (ChildApp app = ChildApp.start(settings)) {
      assertThat(app.awaitExit()).isEqualTo(2);
      assertThat(app.err()).hasLineCount(1).contains(parts).doesNotContain("Exception");
    }
  }

  private ProducerRecord<byte[], byte[]> record(long timestamp, byte[] key, byte[] value) {
    return new ProducerRecord<>(in, 0, timestamp, key, value, List.of());
  }

  private ProducerRecord<byte[], byte[]> record(String customer) {
    var record =
        new ProducerRecord<byte[], byte[]>(
            in, bytes("{\"customer\":{\"id\":\"" + customer + "\"}}"));
    record.headers().add("tenant", bytes(customer));
    return record;
  }

  private static String quiet(int i) {
    return "{\"customer\":{\"id\":\"quiet " + i + "\"}}";
  }

  private static void send(List<ProducerRecord<byte[], byte[]>> records) throws Exception {
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(
            Map.of("bootstrap.servers", broker.bootstrapServers()),
            new ByteArraySerializer(),
            new ByteArraySerializer())) {
      for (ProducerRecord<byte[], byte[]> record : records) {
        var unused = producer.send(record);
      }
    }
  }

  /** Exactly so many, of a topic of one partition. */
  private static List<ConsumerRecord<byte[], byte[]>> read(String topic, int records) {
    Map<String, Object> config =
        Map.of("bootstrap.servers", broker.bootstrapServers(), "isolation.level", "read_committed");
    try (var consumer =
        new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> partition = List.of(new TopicPartition(topic, 0));
      consumer.assign(partition);
      consumer.seekToBeginning(partition);
      List<ConsumerRecord<byte[], byte[]>> read = new ArrayList<>();
      long deadline = System.nanoTime() + PATIENCE.toNanos();
      while (read.size() < records && System.nanoTime() < deadline) {
        consumer.poll(Duration.ofMillis(100)).forEach(read::add);
      }
      assertThat(read).hasSize(records);
      return read;
    }
  }

  private static String seen(long timestamp, byte[] key, byte[] value, Iterable<Header> headers) {
    StringBuilder seen = new StringBuilder(timestamp + ": " + hex(key) + " = " + hex(value));
    headers.forEach(header -> seen.append(", " + header.key() + " = " + hex(header.value())));
    return seen.toString();
  }

  private static String hex(byte[] bytes) {
    return bytes == null ? "null" : "'" + HexFormat.of().formatHex(bytes) + "'";
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
