package io.streamshaper.examples;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One hot key, or a few, and many quiet ones, each sending at an even rate whatever becomes of its
 * records. A value begins with the number of the record among its key's.
 */
final class Load implements AutoCloseable {
  static final String HOT = "hot";
  static final int VALUE_BYTES = 100;

  private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final double NANOS_PER_SECOND = 1e9;

  private final KafkaProducer<String, byte[]> producer;
  private final String topic;
  private final List<String> hotKeys;
  private final double hotPerSecond;
  private final List<String> quietKeys;
  private final double quietPerSecond;
  private final Map<String, Long> numbers = new HashMap<>();
  private final LongAdder sent = new LongAdder();
  private volatile boolean hotSends = true;
  private volatile boolean stopped;

  /**
   * @param quietPerSecond records a second of each quiet key
   */
  Load(
      String bootstrapServers,
      String topic,
      double hotPerSecond,
      int quietKeys,
      double quietPerSecond) {
    this(bootstrapServers, topic, 1, hotPerSecond, quietKeys, quietPerSecond);
  }

  /**
   * @param hotPerSecond records a second of all hot keys
   * @param quietPerSecond records a second of each quiet key
   */
  Load(
      String bootstrapServers,
      String topic,
      int hotKeys,
      double hotPerSecond,
      int quietKeys,
      double quietPerSecond) {
    this.topic = topic;
    this.hotKeys =
        hotKeys == 1 ? List.of(HOT) : IntStream.range(0, hotKeys).mapToObj(i -> HOT + i).toList();
    this.hotPerSecond = hotPerSecond;
    this.quietKeys = IntStream.range(0, quietKeys).mapToObj(i -> "quiet-" + i).toList();
    this.quietPerSecond = quietPerSecond;
    producer =
        new KafkaProducer<>(
            Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers),
            new StringSerializer(),
            new ByteArraySerializer());
  }

  static boolean isHot(String key) {
    return key.startsWith(HOT);
  }

  static long numberOf(byte[] value) {
    return ByteBuffer.wrap(value).getLong();
  }

  /** Records sent so far. From any thread. */
  long sent() {
    return sent.sum();
  }

  /** Whether hot keys send; at first it does. From any thread. */
  void hot(boolean sends) {
    hotSends = sends;
  }

  /** Ends {@link #run} soon. From any thread. */
  void stop() {
    stopped = true;
  }

  /** Sends for a while, on this thread; all has been acknowledged when it returns. */
  void run(Duration duration) {
    long start = System.nanoTime();
    long before = 0;
    double hotSeconds = 0;
    long hotSent = 0;
    long quietSent = 0;
    for (long elapsed = 0;
        elapsed < duration.toNanos() && !stopped;
        elapsed = System.nanoTime() - start) {
      double seconds = elapsed / NANOS_PER_SECOND;
      hotSeconds += hotSends ? (elapsed - before) / NANOS_PER_SECOND : 0;
      before = elapsed;
      for (; hotSent < hotPerSecond * hotSeconds; hotSent++) {
        send(hotKeys.get((int) (hotSent % hotKeys.size())), System.currentTimeMillis());
      }
      for (; quietSent < quietPerSecond * quietKeys.size() * seconds; quietSent++) {
        send(quietKeys.get((int) (quietSent % quietKeys.size())), System.currentTimeMillis());
      }
      LockSupport.parkNanos(STEP_NANOS);
    }
    producer.flush();
  }

  /** Sends, as fast as it can, what would have been sent in the time up to now. */
  void catchUp(Duration past) {
    long nowMs = System.currentTimeMillis();
    double quietPerMs = quietPerSecond * quietKeys.size() / 1000;
    long hotSent = 0;
    long quietSent = 0;
    for (long ms = 0; ms < past.toMillis() && !stopped; ms++) {
      long timestampMs = nowMs - past.toMillis() + ms;
      for (; hotSent < hotPerSecond / 1000 * ms; hotSent++) {
        send(hotKeys.get((int) (hotSent % hotKeys.size())), timestampMs);
      }
      for (; quietSent < quietPerMs * ms; quietSent++) {
        send(quietKeys.get((int) (quietSent % quietKeys.size())), timestampMs);
      }
    }
    producer.flush();
  }

  @SuppressWarnings("FutureReturnValueIgnored") // the callback hears of it
  private void send(String key, long timestampMs) {
    long number = numbers.merge(key, 1L, Long::sum) - 1;
    byte[] value = ByteBuffer.allocate(VALUE_BYTES).putLong(number).array();
    producer.send(
        new ProducerRecord<>(topic, null, timestampMs, key, value),
        (metadata, failure) -> {
          if (failure == null) {
            sent.increment();
          }
        });
  }

  @Override
  public void close() {
    producer.close(Duration.ofSeconds(5));
  }
}
