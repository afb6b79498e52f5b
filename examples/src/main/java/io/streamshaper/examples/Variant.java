package io.streamshaper.examples;

import com.fasterxml.jackson.annotation.JsonValue;
import io.streamshaper.Shaped;
import io.streamshaper.Shaper;
import io.streamshaper.ShaperOptions;
import java.time.Duration;
import java.util.Map;
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
import org.apache.kafka.streams.processor.api.Processor;
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
    void connect(StreamsBuilder builder, KStream<String, byte[]> in, String out, String dropped) {
      in.to(out, PRODUCED);
    }
  },

  /** On time: each record passes at once. */
  UNQUEUED("shaper, nothing queued", "b") {
    @Override
    void connect(StreamsBuilder builder, KStream<String, byte[]> in, String out, String dropped) {
      shape(in, ShaperOptions.defaults(), out, dropped);
    }
  },

  /** A little late: each record is queued, and leaves milliseconds later. */
  QUEUED("shaper, all queued", "c") {
    private static final long AGE_MS = 40;

    @Override
    void connect(StreamsBuilder builder, KStream<String, byte[]> in, String out, String dropped) {
      shape(in, ShaperOptions.defaults(), out, dropped);
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
    void connect(StreamsBuilder builder, KStream<String, byte[]> in, String out, String dropped) {
      ShaperOptions options =
          ShaperOptions.builder()
              .time(ShaperOptions.Time.STREAM)
              .rate(1000.0 * PER_MS)
              .burst((long) PER_MS)
              .build();
      shape(in, options, out, dropped);
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
    private static final String STORE_NAME = "buffer";

    @Override
    void connect(StreamsBuilder builder, KStream<String, byte[]> in, String out, String dropped) {
      builder.addStateStore(
          Stores.keyValueStoreBuilder(
                  Stores.inMemoryKeyValueStore(STORE_NAME), Serdes.Long(), Serdes.ByteArray())
              .withLoggingEnabled(Map.of()));
      ProcessorSupplier<String, byte[], String, byte[]> buffer = () -> new Buffer(STORE_NAME);
      in.process(buffer, STORE_NAME).to(out, PRODUCED);
    }
  },

  /**
   * Keeps one record a key, so it is given as many keys as records. It must have a table before it;
   * this one costs next to nothing.
   */
  SUPPRESS("suppress", "f") {
    private static final int BUFFERED = 1000;

    @Override
    void connect(StreamsBuilder builder, KStream<String, byte[]> in, String out, String dropped) {
      KTable<String, byte[]> table =
          in.toTable(
              Materialized.<String, byte[]>as(Stores.lruMap("table", 1))
                  .withKeySerde(Serdes.String())
                  .withValueSerde(Serdes.ByteArray())
                  .withLoggingDisabled()
                  .withCachingDisabled());
      table
          .suppress(
              Suppressed.untilTimeLimit(
                  Duration.ofDays(1), BufferConfig.maxRecords(BUFFERED).emitEarlyWhenFull()))
          .toStream()
          .to(out, PRODUCED);
    }

    @Override
    long held(long backlog) {
      return BUFFERED;
    }

    @Override
    boolean needsUniqueKeys() {
      return true;
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

  abstract void connect(
      StreamsBuilder builder, KStream<String, byte[]> in, String out, String dropped);

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

  Topology topology(String in, String out, String dropped, TimestampExtractor timestamps) {
    StreamsBuilder builder = new StreamsBuilder();
    Consumed<String, byte[]> consumed =
        Consumed.with(Serdes.String(), Serdes.ByteArray()).withTimestampExtractor(timestamps);
    connect(builder, builder.stream(in, consumed), out, dropped);
    return builder.build();
  }

  private static void shape(
      KStream<String, byte[]> in, ShaperOptions options, String out, String dropped) {
    Shaped<String, byte[]> shaped =
        Shaper.<String, byte[]>named("shaper")
            .serdes(Serdes.String(), Serdes.ByteArray())
            .options(options)
            .shape(in);
    shaped.forwarded().to(out, PRODUCED);
    shaped.dropped().to(dropped, PRODUCED);
  }

  /** The least that a buffer of one's own would do. */
  private static final class Buffer implements Processor<String, byte[], String, byte[]> {
    private final String storeName;
    private ProcessorContext<String, byte[]> context;
    private KeyValueStore<Long, byte[]> store;
    private long sequence;

    Buffer(String storeName) {
      this.storeName = storeName;
    }

    @Override
    public void init(ProcessorContext<String, byte[]> context) {
      this.context = context;
      store = context.getStateStore(storeName);
    }

    @Override
    public void process(Record<String, byte[]> record) {
      long key = sequence++;
      store.put(key, record.value());
      store.delete(key);
      context.forward(record);
    }
  }
}
