package io.streamshaper.examples;

import com.fasterxml.jackson.annotation.JsonValue;
import io.streamshaper.Shaped;
import io.streamshaper.Shaper;
import io.streamshaper.ShaperOptions;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Queue;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * The topologies that are compared. Which timestamp a record gets decides what a shaper does with
 * it; all of them ask for it in the same way, so that it costs the same.
 */
enum Variant {
  PASS_THROUGH("pass-through", "a") {
    @Override
    void connect(Pipe pipe) {
      pipe.in.to(pipe.out, PRODUCED);
    }
  },

  /** On time: each record passes at once. */
  UNQUEUED("shaper, nothing queued", "b") {
    @Override
    void connect(Pipe pipe) {
      shape(pipe, ShaperOptions.defaults());
    }
  },

  /** A little late: each record is queued, and leaves milliseconds later. */
  QUEUED("shaper, all queued", "c") {
    private static final long AGE_MS = 40;

    @Override
    void connect(Pipe pipe) {
      shape(pipe, ShaperOptions.defaults());
    }

    @Override
    long timestampMs(long number, long startMs, long backlog) {
      return System.currentTimeMillis() - AGE_MS;
    }
  },

  /**
   * In stream time, and the backlog arrives in one instant; from then on each record that comes
   * lets the oldest one go.
   */
  BACKLOG("shaper, backlog committed", "d") {
    private static final int PER_MS = 1000;

    @Override
    void connect(Pipe pipe) {
      ShaperOptions options =
          ShaperOptions.builder()
              .time(ShaperOptions.Time.STREAM)
              .rate(1000.0 * PER_MS)
              .burst((long) PER_MS)
              .build();
      shape(pipe, options);
    }

    @Override
    long timestampMs(long number, long startMs, long backlog) {
      return startMs + Math.max(0, number - backlog) / PER_MS;
    }

    @Override
    long held(long backlog) {
      return backlog;
    }
  },

  STORE("put and delete", "e") {
    @Override
    void connect(Pipe pipe) {
      buffer(pipe, 0);
    }
  },

  /**
   * Keeps one record a key, so it is given as many keys as records. It must have a table before it;
   * this one costs next to nothing.
   */
  SUPPRESS("suppress", "f") {
    private static final int SUPPRESSED = 1000;

    @Override
    void connect(Pipe pipe) {
      KTable<String, byte[]> table =
          pipe.in.toTable(
              Materialized.<String, byte[]>as(Stores.lruMap("table", 1))
                  .withKeySerde(Serdes.String())
                  .withValueSerde(Serdes.ByteArray())
                  .withLoggingDisabled()
                  .withCachingDisabled());
      table
          .suppress(
              Suppressed.untilTimeLimit(
                  Duration.ofDays(1), BufferConfig.maxRecords(SUPPRESSED).emitEarlyWhenFull()))
          .toStream()
          .to(pipe.out, PRODUCED);
    }

    @Override
    long held(long backlog) {
      return SUPPRESSED;
    }

    @Override
    boolean needsUniqueKeys() {
      return true;
    }
  },

  /** What {@link #BACKLOG} does, with a store of one's own. */
  STORE_BACKLOG("put, delete later", "g") {
    @Override
    void connect(Pipe pipe) {
      buffer(pipe, pipe.backlog);
    }

    @Override
    long held(long backlog) {
      return backlog;
    }
  };

  private static final Produced<String, byte[]> PRODUCED =
      Produced.with(Serdes.String(), Serdes.ByteArray());

  private final String label;
  private final String letter;

  Variant(String label, String letter) {
    this.label = label;
    this.letter = letter;
  }

  /** What a variant is put between. */
  record Pipe(
      StreamsBuilder builder,
      KStream<String, byte[]> in,
      long backlog,
      String out,
      String dropped) {}

  abstract void connect(Pipe pipe);

  /** The timestamp that a record gets when its turn comes. */
  long timestampMs(long number, long startMs, long backlog) {
    return System.currentTimeMillis();
  }

  /** How many records may still be held once all have been read. */
  long held(long backlog) {
    return 0;
  }

  boolean needsUniqueKeys() {
    return false;
  }

  @JsonValue
  String label() {
    return label;
  }

  String letter() {
    return letter;
  }

  Topology topology(
      String in, long backlog, String out, String dropped, TimestampExtractor timestamps) {
    StreamsBuilder builder = new StreamsBuilder();
    Consumed<String, byte[]> consumed =
        Consumed.with(Serdes.String(), Serdes.ByteArray()).withTimestampExtractor(timestamps);
    connect(new Pipe(builder, builder.stream(in, consumed), backlog, out, dropped));
    return builder.build();
  }

  private static void shape(Pipe pipe, ShaperOptions options) {
    Shaped<String, byte[]> shaped =
        Shaper.<String, byte[]>named("shaper")
            .serdes(Serdes.String(), Serdes.ByteArray())
            .options(options)
            .shape(pipe.in);
    shaped.forwarded().to(pipe.out, PRODUCED);
    shaped.dropped().to(pipe.dropped, PRODUCED);
  }

  private static void buffer(Pipe pipe, long backlog) {
    pipe.builder.addStateStore(
        Stores.keyValueStoreBuilder(
                Stores.inMemoryKeyValueStore(Buffer.STORE), Serdes.Long(), Serdes.ByteArray())
            .withLoggingEnabled(Map.of()));
    ProcessorSupplier<String, byte[], String, byte[]> buffer = () -> new Buffer(backlog);
    pipe.in.process(buffer, Buffer.STORE).to(pipe.out, PRODUCED);
  }

  /** The least that a buffer of one's own would do: it could not even be restored. */
  private static final class Buffer extends ContextualProcessor<String, byte[], String, byte[]> {
    static final String STORE = "buffer";

    private final long backlog;
    private final Queue<Record<String, byte[]>> queue = new ArrayDeque<>();
    private KeyValueStore<Long, byte[]> store;
    private long nextIn;
    private long nextOut;

    Buffer(long backlog) {
      this.backlog = backlog;
    }

    @Override
    public void init(ProcessorContext<String, byte[]> context) {
      super.init(context);
      store = context.getStateStore(STORE);
    }

    @Override
    public void process(Record<String, byte[]> record) {
      store.put(nextIn++, record.value());
      queue.add(record);
      if (queue.size() > backlog) {
        store.delete(nextOut++);
        context().forward(queue.remove());
      }
    }
  }
}
