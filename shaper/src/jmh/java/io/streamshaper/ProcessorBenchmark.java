package io.streamshaper;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What the processor adds to a record's way, without Kafka Streams around it: the context only
 * counts what is forwarded, and nothing is committed.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
    value = 1,
    jvmArgs = {"-Xms2g", "-Xmx2g", "-XX:+UseParallelGC"})
public class ProcessorBenchmark {
  private static final int KEYS = 1000;
  private static final int STANDING = 16 * KEYS;
  private static final String VALUE = "v".repeat(100);

  /** What a record meets. */
  public enum Path {
    /** Nothing queued: it passes at once. */
    PASS,
    /** Records arrive late: it is queued, and leaves when reading pauses. */
    RELEASE,
    /** No token and a full queue: it is queued, and another one is dropped. */
    FULL
  }

  @Param Path path;

  private final CountingContext context = new CountingContext();
  private final String[] keys = new String[KEYS];
  private Processor<String, String, String, String> processor;
  private int next;
  private long ageMs;

  /** Opens the processor as a stream thread does, and fills the queue. */
  @Setup
  public void open() {
    Thread.currentThread().setName("benchmark-StreamThread-1"); // else the clock is the context's
    Duration day = Duration.ofDays(1);
    ShaperOptions.Builder options =
        ShaperOptions.builder().target(day).interval(day.multipliedBy(2)).dropBatch(1);
    switch (path) {
      case PASS -> options.rate(1e9).burst(1_000_000_000_000L);
      case RELEASE -> ageMs = 1000;
      case FULL -> options.rate(1e-3).burst(1).maxRecords(STANDING);
    }
    Shaper<String, String> shaper =
        Shaper.<String, String>named("s")
            .serdes(Serdes.String(), Serdes.String())
            .options(options.build());
    context.addStateStore(
        new FlowQueueStore(
            Stores.inMemoryKeyValueStore(shaper.storeName()).get(), false, true));
    context.addStateStore(cached(new CommitHook(shaper.hookName())));
    processor = shaper.get();
    processor.init(context);
    for (int i = 0; i < KEYS; i++) {
      keys[i] = "customer-" + i;
    }
    for (int i = 0; i < 2 * STANDING; i++) {
      record();
    }
  }

  /** One record. */
  @Benchmark
  public long record() {
    String key = keys[next++ % KEYS];
    processor.process(new Record<>(key, VALUE, System.currentTimeMillis() - ageMs));
    return context.forwarded;
  }

  /** The same without a shaper. */
  @Benchmark
  public long passThrough() {
    String key = keys[next++ % KEYS];
    context.forward(new Record<>(key, VALUE, System.currentTimeMillis() - ageMs), "s-forwarded");
    return context.forwarded;
  }

  /** Keeps the marker to itself, as a cache does until the commit. */
  private static StateStore cached(CommitHook hook) {
    return (StateStore)
        Proxy.newProxyInstance(
            hook.getClass().getClassLoader(),
            new Class<?>[] {KeyValueStore.class},
            (proxy, method, arguments) ->
                method.getName().equals("put") ? null : method.invoke(hook, arguments));
  }

  private static final class CountingContext extends MockProcessorContext<String, String> {
    private long forwarded;

    @Override
    public <K extends String, V extends String> void forward(
        Record<K, V> record, String childName) {
      forwarded++;
    }
  }
}
