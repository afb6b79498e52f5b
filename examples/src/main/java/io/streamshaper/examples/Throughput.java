package io.streamshaper.examples;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TimestampExtractor;

/**
 * How fast each {@link Variant} gets through a topic that lies ready, in one JVM and in turn. The
 * clock runs from the first record behind the backlog that one variant needs to the last
 * acknowledgement of what comes out.
 */
final class Throughput implements AutoCloseable {
  private static final int KEYS = 1000;
  private static final long LARGEST_BACKLOG = 40_000;
  private static final Duration TIMEOUT = Duration.ofMinutes(2);
  private static final double MIB = 1024.0 * 1024;

  private static final com.sun.management.OperatingSystemMXBean SYSTEM =
      (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private final Admin admin;
  private final String bootstrapServers;
  private final Path stateDir;
  private final Setting setting;
  private final long backlog;
  private final String id = "bench-%08x".formatted(System.nanoTime());
  private int runs;

  /** What all runs have in common. */
  record Setting(
      String guarantee, int valueBytes, long records, int commitMs, List<Variant> variants) {}

  /** One run of one variant. */
  record Measured(
      double perSecond,
      double cpuSecondsPerMillion,
      double changelogPerThousand,
      double peakHeapMib,
      long dropped) {}

  /** All rounds of one setting, and what they show. */
  record Result(Setting setting, Map<Variant, List<Measured>> rounds, List<Target> targets) {}

  Throughput(Admin admin, String bootstrapServers, Path stateDir, Setting setting)
      throws Exception {
    this.admin = admin;
    this.bootstrapServers = bootstrapServers;
    this.stateDir = stateDir;
    this.setting = setting;
    backlog = Math.min(LARGEST_BACKLOG, setting.records / 5);
    Application.createTopics(admin, List.of(in(true), in(false)), 1);
    load(true);
    load(false);
  }

  /**
   * Runs all variants in turn, every second time in reverse.
   *
   * @param before is told the round, from 1 - warmUps on, and the variant
   */
  Result run(int warmUps, int rounds, BiConsumer<Integer, Variant> before) throws Exception {
    Map<Variant, List<Measured>> measured = new EnumMap<>(Variant.class);
    List<Variant> turn = new ArrayList<>(setting.variants);
    for (int round = 1 - warmUps; round <= rounds; round++) {
      for (Variant variant : turn) {
        before.accept(round, variant);
        Measured one = run(variant);
        if (round > 0) {
          measured.computeIfAbsent(variant, first -> new ArrayList<>()).add(one);
        }
      }
      Collections.reverse(turn);
    }
    return new Result(setting, measured, targets(measured));
  }

  private Measured run(Variant variant) throws Exception {
    System.gc(); // what the one before left is not this one's
    String runId = "%s-%d-%s".formatted(id, ++runs, variant.letter());
    try (BenchRun run = new BenchRun(admin, bootstrapServers, runId, stateDir, config())) {
      Window window = new Window(variant, backlog);
      long enough = setting.records - variant.held(backlog);
      run.start(
          variant.topology(
              in(variant.needsUniqueKeys()), backlog, run.out(), run.dropped(), window));
      boolean done =
          run.await(
              TIMEOUT,
              () -> window.read == setting.records && run.acknowledged().records() >= enough);
      long cpuNanos = SYSTEM.getProcessCpuTime() - window.startCpuNanos;
      double heapMib = peakHeapMib();
      if (!done) {
        throw new IllegalStateException(
            "%s must be through within %s, read %,d and forwarded %,d of %,d records"
                .formatted(
                    variant.label(),
                    TIMEOUT,
                    window.read,
                    run.acknowledged().records(),
                    setting.records));
      }
      double nanos = run.acknowledged().lastNanos() - window.startNanos;
      run.stop();
      double records = setting.records - backlog;
      BenchRun.Balance balance = run.balance(key -> "", 0);
      if (balance.read() != setting.records) {
        throw new IllegalStateException(
            "records read must be %,d, were %,d".formatted(setting.records, balance.read()));
      }
      return new Measured(
          records / nanos * TimeUnit.SECONDS.toNanos(1),
          cpuNanos / records / 1000,
          1000.0 * run.acknowledged().changelogRecords() / setting.records,
          heapMib,
          balance.dropped());
    }
  }

  private Map<String, ?> config() {
    return Map.of(
        StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
        setting.guarantee,
        StreamsConfig.COMMIT_INTERVAL_MS_CONFIG,
        setting.commitMs);
  }

  /** Those whose variants were measured. */
  static List<Target> targets(Map<Variant, List<Measured>> rounds) {
    List<Target> targets = new ArrayList<>();
    Ratios ratios = new Ratios(rounds, targets);
    ratios.faster("b/a throughput", 0.97, Variant.UNQUEUED, Variant.PASS_THROUGH);
    if (rounds.keySet().containsAll(Set.of(Variant.UNQUEUED, Variant.PASS_THROUGH))) {
      List<Measured> plain = rounds.get(Variant.PASS_THROUGH);
      List<Measured> shaped = rounds.get(Variant.UNQUEUED);
      Spread cpu =
          Spread.ofRatios(
              list(shaped, Measured::cpuSecondsPerMillion),
              list(plain, Measured::cpuSecondsPerMillion));
      targets.add(Target.atMost("b/a CPU", 1.05, cpu));
      Spread changelog = Spread.of(list(shaped, Measured::changelogPerThousand));
      targets.add(Target.atMost("b changelog records a thousand", 0, changelog));
    }
    ratios.faster("c/a throughput", 0.85, Variant.QUEUED, Variant.PASS_THROUGH);
    ratios.faster("c/e throughput", 1.5, Variant.QUEUED, Variant.STORE);
    ratios.faster("c/f throughput", 1.3, Variant.QUEUED, Variant.SUPPRESS);
    ratios.faster("d/e throughput", 1.0, Variant.BACKLOG, Variant.STORE);
    return targets;
  }

  private record Ratios(Map<Variant, List<Measured>> rounds, List<Target> targets) {
    void faster(String name, double bound, Variant variant, Variant to) {
      if (rounds.containsKey(variant) && rounds.containsKey(to)) {
        Spread ratio =
            Spread.ofRatios(
                list(rounds.get(variant), Measured::perSecond),
                list(rounds.get(to), Measured::perSecond));
        targets.add(Target.atLeast(name, bound, ratio));
      }
    }
  }

  static List<Double> list(List<Measured> rounds, Function<Measured, Double> what) {
    return rounds.stream().map(what).toList();
  }

  private static double peakHeapMib() {
    return heapPools().mapToLong(pool -> pool.getPeakUsage().getUsed()).sum() / MIB;
  }

  private static Stream<MemoryPoolMXBean> heapPools() {
    return ManagementFactory.getMemoryPoolMXBeans().stream()
        .filter(pool -> pool.getType() == MemoryType.HEAP);
  }

  private String in(boolean uniqueKeys) {
    return id + (uniqueKeys ? "-in-unique" : "-in");
  }

  @SuppressWarnings("FutureReturnValueIgnored") // what is missing shows: it is counted at the end
  private void load(boolean uniqueKeys) {
    Map<String, Object> config =
        Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG,
            bootstrapServers,
            ProducerConfig.LINGER_MS_CONFIG,
            20,
            ProducerConfig.BATCH_SIZE_CONFIG,
            128 * 1024);
    try (KafkaProducer<String, byte[]> producer =
        new KafkaProducer<>(config, new StringSerializer(), new ByteArraySerializer())) {
      for (long number = 0; number < setting.records; number++) {
        String key = "%010d".formatted(uniqueKeys ? number : number % KEYS);
        byte[] value = ByteBuffer.allocate(setting.valueBytes).putLong(number).array();
        producer.send(new ProducerRecord<>(in(uniqueKeys), key, value));
      }
    }
  }

  @Override
  public void close() {
    BenchRun.deleteTopics(admin, List.of(in(true), in(false)));
  }

  /** Gives timestamps, and so sees each record when its turn comes. */
  private static final class Window implements TimestampExtractor {
    private final Variant variant;
    private final long backlog;
    private final long startMs = System.currentTimeMillis();
    private volatile long startNanos;
    private volatile long startCpuNanos;
    private volatile long read;

    Window(Variant variant, long backlog) {
      this.variant = variant;
      this.backlog = backlog;
    }

    @Override
    public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
      long number = record.offset();
      if (number == backlog) {
        open();
      }
      read = number + 1;
      return variant.timestampMs(number, startMs, backlog);
    }

    private void open() {
      heapPools().forEach(MemoryPoolMXBean::resetPeakUsage);
      startCpuNanos = SYSTEM.getProcessCpuTime();
      startNanos = System.nanoTime();
    }
  }
}
