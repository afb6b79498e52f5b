package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class BrokerIT {

  private static final Duration PATIENCE = Duration.ofSeconds(30);

  @Test
  void aRecordGoesInAndComesOut() throws Exception {
    try (Broker broker = Broker.start()) {
      createTopic(broker);
      produce(broker, "hello");
      assertThat(consumeOne(broker)).isEqualTo("hello");
    }
  }

  @Test
  void dataSurviveKillAndRestart() throws Exception {
    try (Broker broker = Broker.start()) {
      createTopic(broker);
      produce(broker, "kept");
      String address = broker.bootstrapServers();
      long pid = broker.pid();

      broker.kill();
      assertThat(ProcessHandle.of(pid)).isEmpty();

      broker.restart();
      assertThat(broker.bootstrapServers()).isEqualTo(address);
      assertThat(consumeOne(broker)).isEqualTo("kept");
    }
  }

  @Test
  void aPausedBrokerAnswersNobodyUntilResumed() throws Exception {
    try (Broker broker = Broker.start();
        KafkaProducer<String, String> producer = producer(broker)) {
      createTopic(broker);
      producer.partitionsFor("topic");

      broker.pause();
      var sent = producer.send(new ProducerRecord<>("topic", "during"));
      assertThat(sent).failsWithin(Duration.ofSeconds(1));

      broker.resume();
      assertThat(sent.get(PATIENCE.toSeconds(), TimeUnit.SECONDS).offset()).isZero();
    }
  }

  @Test
  void closeLeavesNoProcessAndNoFolder() throws Exception {
    Broker broker = Broker.start();
    broker.close();
    assertThat(ProcessHandle.of(broker.pid())).isEmpty();
    assertThat(broker.folder()).doesNotExist();
    broker.close();
  }

  @Test
  void aPausedBrokerCanBeClosed() throws Exception {
    Broker broker = Broker.start();
    broker.pause();
    broker.close();
    assertThat(ProcessHandle.of(broker.pid())).isEmpty();
    assertThat(broker.folder()).doesNotExist();
  }

  @Test
  void aGivenDataFolderIsKeptAndUsedAgain(@TempDir Path data) throws Exception {
    try (Broker broker = Broker.start(Map.of(), data)) {
      createTopic(broker);
      produce(broker, "kept");
    }
    try (Broker broker = Broker.start(Map.of(), data)) {
      assertThat(consumeOne(broker)).isEqualTo("kept");
    }
  }

  @Test
  void aSettingThatTheBrokerRefusesIsInTheMessage() {
    assertThatThrownBy(() -> Broker.start(Map.of("num.partitions", "none")))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageStartingWith("the broker ended with status 1")
        .hasMessageContaining("Invalid value none for configuration num.partitions");
  }

  @Test
  void endsWithItsParentEvenWhenThatIsKilled() throws Exception {
    try (Parent parent = Parent.start()) {
      parent.process.destroyForcibly();
      awaitGone(parent);
    }
  }

  @Test
  void endsWithItsParentOnCtrlC() throws Exception {
    try (Parent parent = Parent.start()) {
      parent.process.destroy();
      awaitGone(parent);
    }
  }

  @Test
  void noBrokerJarIsOnOurClassPath() {
    assertThat(System.getProperty("java.class.path"))
        .doesNotContain("kafka_2.13", "scala-library", "log4j");
  }

  /** A JVM like any user's, which runs a broker. */
  private record Parent(Process process, long brokerPid, Path folder) implements AutoCloseable {

    static Parent start() throws IOException {
      List<String> command = new ArrayList<>();
      command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
      command.addAll(List.of("-cp", System.getProperty("java.class.path")));
      command.addAll(List.of(Main.class.getName(), "broker"));
      Process process = new ProcessBuilder(command).redirectError(Redirect.INHERIT).start();
      try (BufferedReader out = process.inputReader(StandardCharsets.UTF_8)) {
        String[] words = out.readLine().split(" ", -1);
        return new Parent(process, Long.parseLong(words[3]), Path.of(words[5]));
      }
    }

    @Override
    public void close() {
      process.destroyForcibly();
    }
  }

  private static void awaitGone(Parent parent) throws InterruptedException {
    await(() -> ProcessHandle.of(parent.brokerPid).isEmpty() && !Files.exists(parent.folder));
  }

  private static void await(BooleanSupplier condition) throws InterruptedException {
    long startNanos = System.nanoTime();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - startNanos).isLessThan(PATIENCE.toNanos());
      Thread.sleep(10);
    }
  }

  private static void createTopic(Broker broker) throws ExecutionException, InterruptedException {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
      admin.createTopics(List.of(new NewTopic("topic", 1, (short) 1))).all().get();
    }
  }

  private static void produce(Broker broker, String value)
      throws ExecutionException, InterruptedException {
    try (KafkaProducer<String, String> producer = producer(broker)) {
      producer.send(new ProducerRecord<>("topic", value)).get();
    }
  }

  private static KafkaProducer<String, String> producer(Broker broker) {
    return new KafkaProducer<>(
        Map.of("bootstrap.servers", broker.bootstrapServers()),
        new StringSerializer(),
        new StringSerializer());
  }

  private static String consumeOne(Broker broker) {
    Map<String, Object> config =
        Map.of(
            "bootstrap.servers",
            broker.bootstrapServers(),
            "group.id",
            "reader",
            "auto.offset.reset",
            "earliest");
    try (var consumer =
        new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("topic"));
      long startNanos = System.nanoTime();
      while (System.nanoTime() - startNanos < PATIENCE.toNanos()) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
          return record.value();
        }
      }
      throw new AssertionError("no record within " + PATIENCE);
    }
  }
}
