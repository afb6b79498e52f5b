package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The app and a broker that wants a password and has a certificate of its own making. */
@Timeout(240)
class AppSecurityIT {
  private static final String LOGIN =
      "org.apache.kafka.common.security.plain.PlainLoginModule required";
  private static final String PASSWORD = "correct-horse-battery";
  private static final String WRONG_PASSWORD = "incorrect-horse-battery";
  private static final String STORE_PASSWORD = "staple-of-the-store";

  /** Kafka logs its settings at info: what is secret among them, too, unless it is kept from it. */
  private static final Map<String, String> ENVIRONMENT =
      Map.of(
          "TRUST_STORE_PASSWORD",
          STORE_PASSWORD,
          "JAVA_TOOL_OPTIONS",
          "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
              + " -Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=info");

  @TempDir private static Path folder;
  private static Broker broker;
  private static String secured;

  private final Map<String, Object> settings = new HashMap<>();

  @BeforeAll
  static void startBroker() throws Exception {
    Path keys = folder.resolve("keys.p12");
    Path certificate = folder.resolve("certificate.pem");
    keytool(
        keys,
        "-genkeypair -alias broker -keyalg EC -dname CN=broker -ext san=ip:127.0.0.1 -validity 2");
    keytool(keys, "-exportcert -alias broker -rfc -file " + certificate);
    keytool(
        folder.resolve("trust.p12"), "-importcert -alias broker -noprompt -file " + certificate);
    keytool(folder.resolve("others.p12"), "-genkeypair -alias other -keyalg EC -dname CN=other");
    Files.writeString(
        folder.resolve("secrets"), "password=" + PASSWORD + "\nwrong=" + WRONG_PASSWORD);

    secured = "127.0.0.1:" + Broker.freePort();
    broker =
        Broker.start(
            Map.of(
                "listeners",
                "SASL_SSL://" + secured,
                "listener.security.protocol.map",
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
                "ssl.keystore.location",
                keys.toString(),
                "ssl.keystore.password",
                STORE_PASSWORD,
                "sasl.enabled.mechanisms",
                "PLAIN",
                "listener.name.sasl_ssl.plain.sasl.jaas.config",
                LOGIN + " user_app=\"" + PASSWORD + "\";"));
    try (Admin admin = admin()) {
      admin
          .createTopics(
              Stream.of("in", "out", "dropped").map(t -> new NewTopic(t, 1, (short) 1)).toList())
          .all()
          .get();
    }
  }

  @AfterAll
  static void stopBroker() {
    broker.close();
  }

  AppSecurityIT() {
    settings.put("bootstrap.servers", secured);
    settings.put("application.id", "secured");
    settings.put("input.topic", "in");
    settings.put("output.topic", "out");
    settings.put("dropped.topic", "dropped");
    settings.put("security.protocol", "SASL_SSL");
    settings.put("sasl.mechanism", "PLAIN");
    settings.put("sasl.jaas.config", login("password"));
    settings.put("ssl.truststore.location", folder.resolve("trust.p12"));
    settings.put("ssl.truststore.password", "${env:TRUST_STORE_PASSWORD}");
  }

  @Test
  void recordsFlowAndNoSecretIsSeen() throws Exception {
    settings.put("processing.guarantee", "exactly_once_v2");
    try (ChildApp check = ChildApp.check(settings, ENVIRONMENT);
        ChildApp app = ChildApp.start(settings, ENVIRONMENT)) {
      assertThat(check.awaitExit()).isZero();
      app.awaitReady();
      roundTrip("through TLS");
      String metrics = app.get("/metrics").body();
      app.terminate();
      assertThat(app.awaitExit()).isEqualTo(128 + 15);

      assertThat(app.err()).contains("sasl.jaas.config = [hidden]", "ssl.truststore.password");
      assertThat(check.out()).contains("ssl.truststore.password", "sasl.jaas.config");
      assertThat(List.of(check.out(), check.err(), app.out(), app.err(), metrics))
          .allSatisfy(AppSecurityIT::hasNoSecret);
    }
  }

  @Test
  void aWrongPasswordIsOneLine() throws Exception {
    settings.put("sasl.jaas.config", login("wrong"));
    refuses(
        "the broker at %s must let us in, did not: Authentication failed: Invalid"
            .formatted(secured));
  }

  @Test
  void aCertificateOfNobodyWeTrustIsOneLine() throws Exception {
    settings.put("ssl.truststore.location", folder.resolve("others.p12"));
    refuses(
        "must let us in, did not: SSL handshake failed: PKIX path building failed:"
            + " unable to find valid certification path");
  }

  @Test
  void aWrongPasswordOfTheTrustStoreIsOneLine() throws Exception {
    settings.put("ssl.truststore.password", "${file:" + folder.resolve("secrets") + ":wrong}");
    refuses("Failed to load SSL keystore " + folder.resolve("trust.p12"));
  }

  @Test
  void aCallWithoutTlsIsOneLine() throws Exception {
    settings.put("security.protocol", "SASL_PLAINTEXT");
    refuses(
        "security.protocol must be SSL or SASL_SSL, which the broker at %s wants, was SASL_PLAINTEXT"
            .formatted(secured));
  }

  @Test
  void aCallWithTlsToABrokerWithoutIsOneLine() throws Exception {
    settings.put("bootstrap.servers", broker.bootstrapServers());
    refuses("no broker answers within 10 s at", ", security.protocol SASL_SSL");
  }

  private void refuses(String... parts) throws Exception {
    Map<String, String> quiet = Map.of("TRUST_STORE_PASSWORD", STORE_PASSWORD);
    try (ChildApp app = ChildApp.start(settings, quiet)) {
      assertThat(app.awaitExit()).isEqualTo(2);
      assertThat(app.err()).hasLineCount(1).contains(parts).doesNotContain("Exception");
      assertThat(app.out()).isEmpty();
      hasNoSecret(app.err());
    }
  }

  private static void hasNoSecret(String text) {
    assertThat(text).doesNotContain(PASSWORD, WRONG_PASSWORD, STORE_PASSWORD);
  }

  private static String login(String password) {
    return LOGIN
        + " username=\"app\" password=\"${file:%s:%s}\";"
            .formatted(folder.resolve("secrets"), password);
  }

  private static void roundTrip(String value) throws Exception {
    Map<String, Object> config =
        Map.of("bootstrap.servers", broker.bootstrapServers(), "isolation.level", "read_committed");
    try (var producer =
            new KafkaProducer<>(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                new StringSerializer(),
                new StringSerializer());
        var consumer =
            new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      producer.send(new ProducerRecord<>("in", value)).get();
      List<TopicPartition> out = List.of(new TopicPartition("out", 0));
      consumer.assign(out);
      consumer.seekToBeginning(out);
      Patience.await(
          "it comes out",
          () -> {
            for (var record : consumer.poll(Duration.ofMillis(100))) {
              assertThat(record.value()).isEqualTo(value);
              return true;
            }
            return false;
          });
    }
  }

  private static Admin admin() {
    return Admin.create(
        Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()));
  }

  private static void keytool(Path store, String words) throws Exception {
    List<String> command =
        Stream.concat(
                Stream.of(Path.of(System.getProperty("java.home"), "bin", "keytool").toString()),
                Stream.of(words.split(" ", -1)))
            .collect(Collectors.toCollection(ArrayList::new));
    command.addAll(List.of("-keystore", store.toString(), "-storetype", "PKCS12"));
    command.addAll(List.of("-storepass", STORE_PASSWORD));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(said).isZero();
  }
}
