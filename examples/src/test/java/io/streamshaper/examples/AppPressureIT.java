package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What those who watch cost the records. The figures are printed, not judged. */
@Timeout(240)
class AppPressureIT {
  private static final int RECORDS = Integer.getInteger("app.pressure.records", 300_000);
  private static final int CONNECTIONS = 1000;
  private static final int SLOW_READERS = 50;
  private static final int UNREAD_ANSWERS = 500;
  private static final int ROUNDS = Integer.getInteger("app.pressure.rounds", 1);
  private static final long DAY_MS = Duration.ofDays(1).toMillis();

  @Test
  void aThousandConnectionsAndSlowReadersKeepNeitherRecordsNorHealthFromMoving() throws Exception {
    try (TestBroker broker = TestBroker.start();
        Admin admin =
            Admin.create(
                Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()))) {
      List<String> topics = List.of("in", "out", "dropped");
      admin
          .createTopics(
              Stream.of("in", "out", "dropped").map(t -> new NewTopic(t, 1, (short) 1)).toList())
          .all()
          .get();
      Patience.await(
          "the topics are there", () -> admin.listTopics().names().get().containsAll(topics));
      fill(broker);

      run(broker, "warm-up", false);
      for (int round = 0; round < ROUNDS; round++) {
        double alone = run(broker, "alone-" + round, false);
        double watched = run(broker, "watched-" + round, true);
        System.out.printf(
            "%,.0f records/s alone, %,.0f with %d connections and %d slow readers: ratio %.2f%n",
            alone, watched, CONNECTIONS, SLOW_READERS, watched / alone);
      }
    }
  }

  /** Records a second, of all there are. */
  private static double run(TestBroker broker, String id, boolean watched) throws Exception {
    Map<String, Object> settings =
        Map.of(
            "bootstrap.servers",
            broker.bootstrapServers(),
            "application.id",
            id,
            "input.topic",
            "in",
            "output.topic",
            "out",
            "dropped.topic",
            "dropped",
            "shaper.max.records",
            RECORDS,
            "shaper.max.bytes",
            1L << 40,
            "shaper.target.ms",
            DAY_MS,
            "shaper.interval.ms",
            2 * DAY_MS);
    List<Socket> sockets = new ArrayList<>();
    try (ChildApp app = ChildApp.start(settings)) {
      if (watched) {
        open(sockets, CONNECTIONS, app.port(), "GET /met");
        String request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        open(sockets, SLOW_READERS, app.port(), request.repeat(UNREAD_ANSWERS));
      }
      Patience.await("some were forwarded", () -> forwarded(app) > 0);
      double before = forwarded(app);
      long start = System.nanoTime();
      Patience.await("all were forwarded", () -> forwarded(app) == RECORDS);
      double seconds = (System.nanoTime() - start) / 1e9;
      assertThat(app.get("/health/live").statusCode()).isEqualTo(200);
      assertThat(app.get("/health/ready").statusCode()).isEqualTo(200);
      return (RECORDS - before) / seconds;
    } finally {
      for (Socket socket : sockets) {
        socket.close();
      }
    }
  }

  private static double forwarded(ChildApp app) throws Exception {
    LockSupport.parkNanos(Duration.ofMillis(20).toNanos());
    return app.metric("shaper_records_total", "outcome=\"forwarded\"");
  }

  /** Connections that send this and read nothing. */
  private static void open(List<Socket> sockets, int number, int port, String sent)
      throws IOException {
    for (int i = 0; i < number; i++) {
      Socket socket = new Socket();
      sockets.add(socket);
      socket.setReceiveBufferSize(4096);
      socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
      socket.getOutputStream().write(sent.getBytes(StandardCharsets.US_ASCII));
    }
  }

  private static void fill(TestBroker broker) {
    Map<String, Object> config =
        Map.of("bootstrap.servers", broker.bootstrapServers(), "linger.ms", 20);
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
      for (int i = 0; i < RECORDS; i++) {
        byte[] key = Integer.toString(i % 100).getBytes(StandardCharsets.US_ASCII);
        var unused = producer.send(new ProducerRecord<>("in", key, new byte[100]));
      }
    }
  }
}
