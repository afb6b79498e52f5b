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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
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
  private static final long LOOK_AGAIN_NANOS = Duration.ofMillis(20).toNanos();
  private static final long DAY_MS = Duration.ofDays(1).toMillis();

  @Test
  void aThousandConnectionsAndSlowReadersKeepNeitherRecordsNorHealthFromMoving() throws Exception {
    try (TestBroker broker = TestBroker.start(Map.of("group.initial.rebalance.delay.ms", "3000"));
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

      run(broker, admin, "warm-up", false);
      for (int round = 0; round < ROUNDS; round++) {
        double alone = run(broker, admin, "alone-" + round, false);
        double watched = run(broker, admin, "watched-" + round, true);
        System.out.printf(
            "%,.0f records/s alone, %,.0f with %d connections and %d slow readers: ratio %.2f%n",
            alone, watched, CONNECTIONS, SLOW_READERS, watched / alone);
      }
    }
  }

  /** Records a second, from the first that comes out to the last. */
  private static double run(TestBroker broker, Admin admin, String id, boolean watched)
      throws Exception {
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
      long before = forwarded(admin);
      Patience.await("the first comes out", () -> forwarded(admin) > before);
      long first = forwarded(admin);
      long start = System.nanoTime();
      long slowest = 0;
      int asked = 0;
      for (long asking = start; forwarded(admin) < before + RECORDS; asking = System.nanoTime()) {
        assertThat(app.get("/health/live").statusCode()).isEqualTo(200);
        slowest = Math.max(slowest, System.nanoTime() - asking);
        asked++;
        LockSupport.parkNanos(LOOK_AGAIN_NANOS);
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      System.out.printf(
          "%s: %.1f s, health answered %d times, the slowest took %d ms%n",
          id, seconds, asked, TimeUnit.NANOSECONDS.toMillis(slowest));
      app.terminate();
      app.awaitExit();
      assertThat(app.err().lines().toList()).last().asString().endsWith("AppRun - stopped");
      return (before + RECORDS - first) / seconds;
    } finally {
      for (Socket socket : sockets) {
        socket.close();
      }
    }
  }

  private static long forwarded(Admin admin) throws Exception {
    TopicPartition out = new TopicPartition("out", 0);
    return admin.listOffsets(Map.of(out, OffsetSpec.latest())).partitionResult(out).get().offset();
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
