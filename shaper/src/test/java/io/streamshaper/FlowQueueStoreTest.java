package io.streamshaper;

import static io.streamshaper.TestTopology.IN;
import static io.streamshaper.TestTopology.NAME;
import static io.streamshaper.TestTopology.bytes;
import static io.streamshaper.TestTopology.headers;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.streamshaper.aqm.Packet;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The store in the test driver, which commits after each step. */
class FlowQueueStoreTest {
  private static final String QUEUE = NAME + "-queue";
  private static final String HOOK = NAME + "-commit-hook";

  /** Calls methods that the stores of Kafka before 4.4 do not have; .ci/run leaves it out there. */
  private static final String SINCE_4_4 = "kafka-4.4";

  /** Any moment; sequences begin with it. */
  private static final long NOW_MS = 1000;

  private Runnable step;
  private FlowQueueStore store;
  private KeyValueStore<Bytes, byte[]> hook;
  private TestTopology test;

  @AfterEach
  void close() {
    if (test != null) {
      test.close();
    }
  }

  @Test
  void whatComesAndGoesBetweenTwoCommitsIsNeverWritten() {
    start(true);
    commit(
        () -> {
          QueuedRecord stays = add("a");
          QueuedRecord leaves = add("b");
          store.remove(leaves);
          store.remove(add("c"));
          assertThat(stays.block()).isNull();
        });
    assertThat(changelog()).containsExactly("+a");
  }

  @Test
  void whatIsQueuedAtACommitIsWrittenOnceAsOneAndDeletedOnce() {
    start(true);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.addAll(List.of(add("a"), add("b"), add("c"))));
    assertThat(changelog()).containsExactly("+abc");
    commit(() -> {});
    assertThat(changelog()).isEmpty();
    commit(() -> store.remove(added.get(1)));
    assertThat(changelog()).containsExactly("0=101", "position 0");
    commit(() -> added.add(add("d")));
    assertThat(changelog()).containsExactly("+d");
    commit(() -> store.remove(added.get(0)));
    assertThat(changelog()).containsExactly("0=100");
    commit(() -> Stream.of(added.get(2), added.get(3)).forEach(store::remove));
    assertThat(changelog()).containsExactly("-0", "-=0", "-3", "position 4");
  }

  /** 1 + 1 + 4 bytes, and of each 1 + 2 + 8 + 1 + 2 + 19 + the value. */
  @Test
  void aBlockIsFullWith64RecordsOr7KiB() {
    start(true);
    commit(() -> IntStream.range(0, 130).forEach(i -> add("a")));
    assertThat(changelog()).containsExactly("+" + "a".repeat(64), "+" + "a".repeat(64), "+aa");
    String most = "b".repeat(512 - 33);
    String rest = "b".repeat(7 * 1024 - 6 - 13 * 512 - 33);
    commit(
        () ->
            Stream.concat(Collections.nCopies(13, most).stream(), Stream.of(rest, "c"))
                .forEach(this::add));
    assertThat(changelog()).containsExactly("+" + most.repeat(13) + rest, "+c");
    commit(
        () ->
            Stream.concat(Collections.nCopies(13, most).stream(), Stream.of(rest + "b"))
                .forEach(this::add));
    assertThat(changelog()).containsExactly("+" + most.repeat(13), "+" + rest + "b");
  }

  /** Its value alone is 19 bytes shorter. */
  @Test
  void aRecordAbove512BytesIsABlockOfItsOwn() {
    start(true);
    String shared = "s".repeat(512 - 19);
    String alone = shared + "s";
    commit(() -> List.of("a", alone, "c", shared, alone, alone).forEach(this::add));
    assertThat(changelog())
        .containsExactly("+a", "+" + alone, "+c" + shared, "+" + alone, "+" + alone);
  }

  /** Else one flow that never gets its turn would keep what others have long been rid of. */
  @Test
  void aBlockOfWhichAQuarterRemainsIsWrittenAnewWithoutTheRest() {
    start(true);
    List<QueuedRecord> added = new ArrayList<>();
    commit(
        () -> Stream.of("a", "b", "c", "d", "e", "f", "g", "h").map(this::add).forEach(added::add));
    changelog();
    commit(() -> Stream.of(0, 1, 3, 4, 6).map(added::get).forEach(store::remove));
    assertThat(changelog()).containsExactly("0=10100100", "position 0");
    commit(() -> store.remove(added.get(2)));
    assertThat(changelog()).containsExactly("+fh", "0=10100000");
    commit(
        () -> {
          assertThat(valueOf(added.get(5))).isEqualTo("f");
          assertThat(valueOf(added.get(7))).isEqualTo("h");
          assertThat(reopened(true)).containsExactly("f", "h");
          store.remove(oldest);
        });
    assertThat(changelog()).containsExactly("0=10000000");
    commit(() -> assertThat(reopened(true)).containsExactly("h"));
    commit(() -> store.remove(oldest));
    assertThat(changelog()).containsExactly("-0", "-=0", "position 8");
  }

  /** A fenced-off instance may have written it late. */
  @Test
  void aRemainderWithoutABlockIsDeleted() {
    start(true);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.addAll(List.of(add("a"), add("b"))));
    commit(() -> store.remove(added.get(0)));
    innermost().put(added.get(1).block().storeKey(), null);
    changelog();
    commit(
        () -> {
          assertThat(reopened(true)).isEmpty();
          add("c");
        });
    assertThat(changelog()).containsExactly("+c", "-=0", "position 1");
  }

  private KeyValueStore<Bytes, byte[]> innermost() {
    return RestartableShaper.innermost(store);
  }

  /** The commit interval is 100 ms. */
  @Test
  void whatHasWaitedForAQuarterOfTheCommitIntervalIsWrittenAheadABlockARecord() {
    start(true);
    List<String> saved = new ArrayList<>();
    commit(
        () -> {
          store.tick(NOW_MS);
          List<QueuedRecord> early = List.of(add("a"), add("b"), add("c"));
          store.tick(NOW_MS + 24);
          store.tick(NOW_MS + 25);
          QueuedRecord late = add("d");
          store.tick(NOW_MS + 49); // the mark is of 24 ms ago
          add("e");
          saved.add(savedOf(early, late));
          store.tick(NOW_MS + 50);
          add("f");
          saved.add(savedOf(early, late));
          add("g");
          saved.add(savedOf(early, late));
          add("h");
          saved.add(savedOf(early, late));
          store.remove(early.get(1));
        });
    assertThat(saved).containsExactly("", "abc", "abc", "abc");
    assertThat(changelog()).containsExactly("+abc", "+defgh", "0=101", "position 0");
  }

  private String savedOf(List<QueuedRecord> early, QueuedRecord late) {
    return Stream.concat(early.stream(), Stream.of(late))
        .filter(queued -> queued.block() != null)
        .map(this::valueOf)
        .collect(Collectors.joining());
  }

  @Test
  void underAtLeastOnceATombstoneFollowsTheCommitThatItDependsOn() {
    start(false);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.addAll(List.of(add("a"), add("b"))));
    changelog();
    List<String> before = new ArrayList<>();
    commit(
        () -> {
          store.remove(added.get(0));
          QueuedRecord late = add("c");
          store.remove(late);
          before.addAll(stored());
        });
    assertThat(before).containsExactly("a", "b");
    assertThat(changelog()).containsExactly("0=10", "position 0");
  }

  /** A crash between the two must find the record where it was, under at-least-once. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @Tag(SINCE_4_4)
  void aTombstoneIsPartOfACommitOnlyUnderExactlyOnce(boolean exactlyOnce) {
    start(exactlyOnce);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.addAll(List.of(add("a"), add("b"))));
    List<String> prepared = new ArrayList<>();
    List<String> committed = new ArrayList<>();
    commit(
        () -> {
          store.remove(added.get(0));
          add("c");
          test.driver().getAllStateStores().get(HOOK).commit(Map.of()); // fires the hook
          prepared.addAll(stored());
          store.commit(Map.of());
          committed.addAll(stored());
        });
    assertThat(committed).containsExactly("b", "c");
    assertThat(prepared).isEqualTo(exactlyOnce ? committed : List.of("a", "b", "c"));
  }

  @Test
  void thePositionIsNotBeyondARecordWhoseTombstoneIsHeldBack() {
    start(false);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.addAll(List.of(add("a"), add("b"))));
    changelog();
    commit(
        () -> {
          store.remove(added.get(0));
          store.advanceStreamTime(5);
        });
    assertThat(changelog()).containsExactly("position 0, time 5", "0=10");
    commit(() -> store.remove(added.get(1)));
    assertThat(changelog()).containsExactly("-0", "-=0", "position 2, time 5");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aCacheOfNoSizeWritesAtOnceAndLosesNothing(boolean exactlyOnce) {
    start(exactlyOnce, ShaperOptions.Store.MEMORY, 0);
    commit(
        () -> {
          QueuedRecord first = add("a");
          assertThat(first.block()).isNotNull();
          store.remove(first);
          add("b");
        });
    assertThat(changelog().stream().filter(change -> !change.startsWith("position")))
        .containsExactlyInAnyOrder("+a", "-0", "+b");
    commit(() -> assertThat(reopened(exactlyOnce)).containsExactly("b"));
  }

  @ParameterizedTest
  @EnumSource(ShaperOptions.Store.class)
  void whatIsStoredComesBackInTheOrderOfArrival(ShaperOptions.Store kind) {
    start(true, kind, 1_000_000);
    List<QueuedRecord> added = new ArrayList<>();
    commit(
        () -> {
          for (String flow : new String[] {"z", "a", null, "", "z", "\u00ff", "a"}) {
            added.add(add(flow, "v" + added.size()));
          }
        });
    commit(
        () -> {
          store.remove(added.get(0));
          store.remove(added.get(3));
          added.add(add("a", "v7"));
        });
    commit(() -> assertThat(reopened(true)).containsExactly("v1", "v2", "v4", "v5", "v6", "v7"));
  }

  @Test
  void rocksDbHoldsTheBytesOnceTheyAreSaved() {
    start(true, ShaperOptions.Store.ROCKSDB, 1_000_000);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.add(add("a")));
    commit(
        () -> {
          QueuedRecord queued = added.get(0);
          assertThat(queued.block().value()).isNull();
          assertThat(valueOf(queued)).isEqualTo("a");
          assertThat(queued.bytes()).isPositive();
          store.remove(queued);
        });
    commit(() -> assertThat(reopened(true)).isEmpty());
  }

  @Test
  void aRecycledStoreForgetsWhatItHadInMemory() {
    start(true);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.addAll(List.of(add("a"), add("b"))));
    changelog();
    commit(
        () -> {
          store.remove(added.get(0));
          add("never committed");
          assertThat(reopened(true)).containsExactly("a", "b");
        });
    assertThat(changelog()).isEmpty();
  }

  @Test
  @Tag(SINCE_4_4)
  void aRecycledStoreReportsNoBytes() {
    start(true);
    commit(
        () -> {
          add("never committed");
          assertThat(reopened(true)).isEmpty();
          assertThat(store.approximateNumUncommittedBytes()).isZero();
        });
  }

  @Test
  void aSequenceIsNeverUsedTwice() {
    start(true);
    List<Long> sequences = new ArrayList<>();
    commit(() -> sequences.add(add("a").sequence()));
    commit(
        () -> {
          reopened(true, NOW_MS);
          sequences.add(add("b").sequence());
          store.nextSequence();
        });
    commit(
        () -> {
          reopened(true, 0); // a clock that went back
          sequences.add(add("c").sequence());
          reopened(true, NOW_MS + 1);
          sequences.add(add("d").sequence());
        });
    assertThat(sequences).isSorted().doesNotHaveDuplicates();
    assertThat(sequences.get(0)).isEqualTo(NOW_MS << 20);
    assertThat(sequences.get(3)).isEqualTo((NOW_MS + 1) << 20);
  }

  /** Else a restart of an emptied queue would search all that was ever deleted. */
  @Test
  void thePositionNeverGoesBackNorBeyondARecord() {
    start(true);
    commit(() -> store.remove(add("a")));
    commit(() -> add("b"));
    commit(() -> reopened(true).forEach(value -> assertThat(value).isEqualTo("b")));
    commit(() -> store.remove(oldest));
    commit(
        () -> {
          assertThat(reopened(true)).isEmpty();
          store.advanceStreamTime(5);
        });
    assertThat(changelog()).containsExactly("+b", "-1", "position 2", "position 2, time 5");
    commit(
        () -> {
          assertThat(reopened(true, 0)).isEmpty();
          store.advanceStreamTime(6);
          add("c");
        });
    assertThat(changelog()).containsExactly("+c", "position 2, time 6");
    commit(() -> assertThat(reopened(true)).containsExactly("c"));
  }

  @Test
  void anEarlierLifeDoesNotMoveThePositionOfALaterOne() {
    start(true);
    commit(() -> store.remove(add("a")));
    commit(
        () -> {
          reopened(true, NOW_MS + 5000); // one life, with a clock that is ahead
          store.remove(add("b"));
          reopened(true, NOW_MS); // the next, with one that is not
          store.advanceStreamTime(1);
        });
    commit(() -> add("c"));
    commit(() -> assertThat(reopened(true, NOW_MS)).containsExactly("c"));
  }

  @Test
  void streamTimeComesBack() {
    start(true);
    commit(() -> assertThat(store.streamTimeMs()).isEqualTo(-1));
    commit(() -> store.advanceStreamTime(77));
    assertThat(changelog()).singleElement().asString().endsWith("time 77");
    commit(
        () -> {
          store.advanceStreamTime(78);
          reopened(true);
          assertThat(store.streamTimeMs()).isEqualTo(77);
        });
    assertThat(changelog()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"0, of format", "11, with a wrong checksum"})
  void whatCannotBeReadIsNamed(int at, String was) {
    start(true);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.add(add("a")));
    added.get(0).block().value()[at]++;
    commit(
        () ->
            assertThatThrownBy(() -> reopened(true))
                .isInstanceOf(SerializationException.class)
                .hasMessageStartingWith("store s-queue, key 000000003e80000061: must be")
                .hasMessageContaining(was));
  }

  @Test
  void whatIsMissingIsNamed() {
    start(true, ShaperOptions.Store.ROCKSDB, 1_000_000);
    List<QueuedRecord> added = new ArrayList<>();
    commit(() -> added.add(add("a")));
    commit(
        () -> {
          store.remove(added.get(0));
          added.get(0).block().hold(null);
        });
    commit(
        () ->
            assertThatThrownBy(() -> store.valueOf(added.get(0)))
                .isInstanceOf(SerializationException.class)
                .hasMessageContaining("store s-queue, key 000000003e80000061: must be"));
  }

  @Test
  @Tag(SINCE_4_4)
  void bytesThatAreNotWrittenYetAreReported() {
    start(true);
    commit(
        () -> {
          long before = store.approximateNumUncommittedBytes();
          QueuedRecord queued = add("a");
          assertThat(store.approximateNumUncommittedBytes() - before).isEqualTo(queued.bytes());
          store.remove(queued);
          assertThat(store.approximateNumUncommittedBytes()).isEqualTo(before);
        });
  }

  @Test
  void theQueueIsLoggedAndNeverCached() {
    StoreBuilder<FlowQueueStore> builder =
        FlowQueueStore.builder(QUEUE, ShaperOptions.Store.MEMORY, Map.of("a", "b"));
    assertThat(builder.loggingEnabled()).isTrue();
    assertThat(builder.logConfig()).containsEntry("a", "b");
    assertThat(builder.withCachingDisabled()).isSameAs(builder);
    assertThat(builder.withLoggingEnabled(Map.of("c", "d")).logConfig()).containsEntry("c", "d");
    assertThatThrownBy(builder::withCachingEnabled).hasMessage("flow queues must not be cached");
    assertThatThrownBy(builder::withLoggingDisabled).hasMessage("flow queues must be logged");
    assertThat(builder.build()).isNotSameAs(builder.build());
  }

  private void start(boolean exactlyOnce) {
    start(exactlyOnce, ShaperOptions.Store.MEMORY, 1_000_000);
  }

  private void start(boolean exactlyOnce, ShaperOptions.Store kind, long cacheBytes) {
    ProcessorSupplier<byte[], byte[], Void, Void> supplier =
        new ProcessorSupplier<>() {
          @Override
          public Processor<byte[], byte[], Void, Void> get() {
            return new Steps(exactlyOnce);
          }

          @Override
          public Set<StoreBuilder<?>> stores() {
            return Set.of(FlowQueueStore.builder(QUEUE, kind, Map.of()), CommitHook.builder(HOOK));
          }
        };
    Topology topology =
        new Topology()
            .addSource("source", new ByteArrayDeserializer(), new ByteArrayDeserializer(), IN)
            .addProcessor(NAME, supplier, "source");
    test =
        TestTopology.of(
            topology, Map.of(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes));
  }

  /** Does what the test says, on the task's thread. */
  private final class Steps extends ContextualProcessor<byte[], byte[], Void, Void> {
    private final boolean exactlyOnce;

    Steps(boolean exactlyOnce) {
      this.exactlyOnce = exactlyOnce;
    }

    @Override
    public void init(ProcessorContext<Void, Void> context) {
      super.init(context);
      store = context.getStateStore(QUEUE);
      hook = context.getStateStore(HOOK);
      assertThat(reopened(exactlyOnce)).isEmpty();
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      step.run();
    }
  }

  private void commit(Runnable step) {
    this.step = step;
    test.pipeUncounted(null, null, headers(), 0);
  }

  private QueuedRecord oldest;

  private List<String> reopened(boolean exactlyOnce) {
    return reopened(exactlyOnce, NOW_MS);
  }

  private List<String> reopened(boolean exactlyOnce, long nowMs) {
    List<String> restored = new ArrayList<>();
    oldest = null;
    store.open(
        hook,
        exactlyOnce,
        100,
        nowMs,
        0,
        queued -> {
          oldest = oldest == null ? queued : oldest;
          restored.add(valueOf(queued));
        });
    return restored;
  }

  /** What is in the store itself, which a query reaches. */
  private List<String> stored() {
    Map<Bytes, byte[]> entries = new HashMap<>();
    var all =
        store
            .query(
                RangeQuery.<Bytes, byte[]>withNoBounds(),
                PositionBound.unbounded(),
                new QueryConfig(false))
            .getResult();
    try (all) {
      all.forEachRemaining(entry -> entries.put(entry.key, entry.value));
    }
    return StoredQueue.of(entries).records().stream()
        .map(record -> TestTopology.text(record.value()))
        .toList();
  }

  private String valueOf(QueuedRecord queued) {
    ByteArrayDeserializer raw = new ByteArrayDeserializer();
    Record<byte[], byte[]> record =
        queued.record(store.name(), store.valueOf(queued), "topic", new Scratch(), raw, raw);
    return TestTopology.text(record.value());
  }

  private QueuedRecord add(String value) {
    return add(value.substring(0, 1), value);
  }

  private QueuedRecord add(String flow, String value) {
    byte[] key = bytes(flow);
    QueuedRecord queued =
        QueuedRecord.resting(
            key == null ? null : Bytes.wrap(key),
            store.nextSequence(),
            new QueuedRecord.Terms(0, 1, false, Packet.NEVER),
            new Record<>(key, value, 0),
            key,
            bytes(value));
    store.add(queued);
    return queued;
  }

  /** What was written since the last call: +values, -sequence, =what remains, position. */
  private List<String> changelog() {
    List<String> changes = new ArrayList<>();
    for (TestRecord<byte[], byte[]> record : test.changes) {
      changes.add(describe(Bytes.wrap(record.key()), record.value()));
    }
    test.changes.clear();
    return changes;
  }

  private String describe(Bytes key, byte[] value) {
    if (key.get().length < Long.BYTES) {
      ByteBuffer position = ByteBuffer.wrap(value, 1, 16);
      long head = position.getLong() - (NOW_MS << 20);
      long timeMs = position.getLong();
      return "position " + head + (timeMs < 0 ? "" : ", time " + timeMs);
    }
    if (StoredQueue.isBlock(key)) {
      long sequence = ByteBuffer.wrap(key.get()).getLong() - (NOW_MS << 20);
      return value == null
          ? "-" + sequence
          : StoredQueue.of(Map.of(key, value)).records().stream()
              .map(queued -> TestTopology.text(queued.value()))
              .collect(Collectors.joining("", "+", ""));
    }
    long sequence = Block.sequenceOfRemainder(key) - (NOW_MS << 20);
    return value == null
        ? "-=" + sequence
        : sequence + "=" + Long.toBinaryString(Block.readRemainder("s", key, value));
  }
}
