package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the store reads and writes of its inner one, which counts. */
class FlowQueueRestartTest {
  private static final long NOW_MS = TestTopology.START_MS;
  private static final long COMMIT_INTERVAL_MS = 100;
  private static final Bytes FLOW = Bytes.wrap(TestTopology.bytes("flow"));

  private final Inner inner = new Inner();
  private final Cache cache = new Cache();
  private FlowQueueStore store = new FlowQueueStore(inner.proxy(), false, true);
  private final List<QueuedRecord> queue = new ArrayList<>();
  private int lives;

  @BeforeEach
  void start() {
    restart(true);
    inner.forget();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aRestartReadsNothingThatWasDeletedAheadOfTheQueue(boolean exactlyOnce) {
    restart(exactlyOnce);
    for (int i = 0; i < 10_000; i++) {
      add();
      commit();
      if (queue.size() > 10) {
        remove(0);
      }
    }
    commit();
    commit();
    assertThat(inner.deleted).as("deleted").hasSizeGreaterThan(9_000);

    inner.forget();
    restart(exactlyOnce);
    assertThat(queue).hasSize(10);
    assertThat(inner.entriesRead).isEqualTo(10);
    assertThat(inner.deletedPassed).as("deleted, and between what was read").isZero();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aRestartOfAQueueThatWasEmptiedReadsNothingAtAll(boolean exactlyOnce) {
    restart(exactlyOnce);
    for (int i = 0; i < 1_000; i++) {
      add();
    }
    commit();
    while (!queue.isEmpty()) {
      remove(0);
    }
    commit();
    commit();

    inner.forget();
    restart(exactlyOnce);
    assertThat(queue).isEmpty();
    assertThat(inner.entriesRead).isZero();
    assertThat(inner.deletedPassed).isZero();
    assertThat(inner.entries).as("the position alone").hasSize(1);
  }

  /**
   * Whatever left when, and however often the task began anew, in order or as after a failure: what
   * is stored is what is queued.
   */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void arrivalsDeparturesCommitsAndRestartsInAnyOrderKeepExactlyWhatIsQueued(boolean exactlyOnce) {
    for (long seed = 0; seed < 200; seed++) {
      Random random = new Random(seed);
      cache.off = seed % 2 == 0;
      restart(exactlyOnce);
      for (int i = 0; i < 200; i++) {
        int dice = random.nextInt(20);
        if (dice < 9) {
          for (int more = dice == 0 ? random.nextInt(80) : 0; more >= 0; more--) {
            add();
          }
        } else if (dice < 17) {
          if (!queue.isEmpty()) {
            for (int more = dice == 9 ? random.nextInt(queue.size()) : 0; more >= 0; more--) {
              remove(random.nextInt(queue.size()));
            }
          }
        } else if (dice < 19) {
          commit();
        } else if (random.nextBoolean()) {
          restart(exactlyOnce);
        } else {
          commit();
          List<Long> before = sequences();
          restart(exactlyOnce);
          assertThat(sequences()).as("seed %d, step %d", seed, i).isEqualTo(before);
        }
      }
      commit();
      assertThat(inner.sequences()).as("seed %d", seed).isEqualTo(sequences());
    }
  }

  /** Its output may not have been acknowledged when the task fails. Position included. */
  @Test
  void underAtLeastOnceWhatLeftIsFoundAgainUntilACommitHasSucceeded() {
    restart(false);
    add();
    add();
    commit();
    List<Long> saved = sequences();
    remove(0);
    store.advanceStreamTime(NOW_MS); // has the position saved
    cache.empty();

    restart(false);
    assertThat(sequences()).isEqualTo(saved);
  }

  /** A fenced-off instance may have written the remainder late. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatIsLeftOfABlockThatIsGoneIsDeletedOnceTheTaskRuns(boolean exactlyOnce) {
    restart(exactlyOnce);
    Block gone = Block.gone(NOW_MS << 20);
    Bytes late = gone.remainderKey();
    inner.entries.put(late, gone.remainder());
    restart(exactlyOnce);
    assertThat(inner.entries).containsKey(late);
    add();
    commit();
    assertThat(inner.entries).doesNotContainKey(late);
    assertThat(inner.sequences()).isEqualTo(sequences());
  }

  /** As before Kafka 4.3. A commit can come at any moment between two ticks. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whereNobodyTellsOfCommitsATombstoneWaitsUntilOneMustHaveBeen(boolean cacheOff) {
    store = new FlowQueueStore(inner.proxy(), false, false);
    cache.off = cacheOff;
    restart(false);
    add();
    add();
    add();
    cache.empty();
    List<Long> sequences = sequences();
    remove(0);
    store.tick(1000);
    remove(0);
    store.tick(1100); // the interval is not over: there may have been no commit yet
    store.tick(1101); // it is over: there will be one before the next tick
    cache.empty();
    assertThat(inner.sequences()).isEqualTo(sequences);

    store.tick(1101);
    assertThat(inner.sequences()).isEqualTo(sequences.subList(1, 3));
    restart(false);
    assertThat(sequences()).as("the position is not beyond").isEqualTo(sequences.subList(1, 3));
  }

  /** Kafka Streams commits no sooner than the clock has caught up, while ticks go on. */
  @Test
  void whereNobodyTellsOfCommitsATickOfAClockThatWentBackSaysNothing() {
    store = new FlowQueueStore(inner.proxy(), false, false);
    restart(false);
    add();
    cache.empty();
    store.tick(9000);
    remove(0);
    store.tick(5000);
    store.tick(5101);
    store.tick(5102);
    assertThat(inner.sequences()).as("not even waiting").hasSize(1);
    store.tick(9000);
    store.tick(9101); // there will be a commit before the next tick, unless the clock goes back
    store.tick(5000);
    store.tick(9101);
    assertThat(inner.sequences()).hasSize(1);
    store.tick(9101);
    assertThat(inner.sequences()).isEmpty();
  }

  @Test
  void whereNobodyTellsOfCommitsTombstonesComeInTurnAndAfterAClockThatWentBack() {
    store = new FlowQueueStore(inner.proxy(), false, false);
    restart(false);
    for (int i = 0; i < 3; i++) {
      add();
    }
    cache.empty();
    List<Long> sequences = sequences();
    remove(0);
    store.tick(5000);
    remove(0);
    store.tick(5101);
    store.tick(5101); // the first is written, the second waits from now on
    assertThat(inner.sequences()).isEqualTo(sequences.subList(1, 3));
    remove(0);
    store.tick(4000);
    store.tick(5201);
    store.tick(5202);
    assertThat(inner.sequences()).isEqualTo(sequences.subList(1, 3));
    store.tick(5202); // the second is written, the third waits
    store.tick(6000);
    store.tick(6000);
    assertThat(inner.sequences()).isEmpty();
  }

  /** Of two instances that start from the same state, either's clock can be ahead. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void instancesThatStartFromTheSameStateUseOtherSequences(boolean exactlyOnce) {
    restart(exactlyOnce);
    add();
    commit();
    List<Long> saved = sequences();
    List<List<Long>> added = new ArrayList<>();
    for (long salt : new long[] {0, 5_000, FlowQueueStore.SALTS - 1}) {
      for (long nowMs : new long[] {NOW_MS - 3_600_000, NOW_MS + 3_600_000}) {
        restart(exactlyOnce, nowMs, salt);
        assertThat(sequences()).as("what was committed").isEqualTo(saved);
        for (int unsaved = 0; unsaved < 1000; unsaved++) {
          add();
        }
        added.add(sequences().subList(1, 1001));
      }
    }
    assertThat(added.stream().flatMap(List::stream)).doesNotHaveDuplicates();
    assertThat(added).allSatisfy(list -> assertThat(list.get(0)).isGreaterThan(saved.get(0)));
  }

  private void add() {
    var terms = new QueuedRecord.Terms(NOW_MS, 1, false, Long.MAX_VALUE);
    var record = new Record<>("key", "value", NOW_MS);
    byte[] value = TestTopology.bytes("value");
    QueuedRecord queued =
        QueuedRecord.resting(FLOW, store.nextSequence(), terms, record, FLOW.get(), value);
    store.add(queued);
    queue.add(queued);
  }

  private void remove(int index) {
    store.remove(queue.remove(index));
  }

  /** As Kafka Streams does it: caches first, then the offsets, then the stores are told. */
  @SuppressWarnings("deprecation") // what every version has
  private void commit() {
    cache.empty();
    store.flush();
  }

  private void restart(boolean exactlyOnce) {
    restart(exactlyOnce, NOW_MS, 1_000L * ++lives);
  }

  /** As Kafka Streams does it: it tells of a commit although nothing can have been written. */
  @SuppressWarnings("deprecation") // what every version has
  private void restart(boolean exactlyOnce, long nowMs, long salt) {
    queue.clear();
    inner.writable = false;
    store.open(cache.proxy(), exactlyOnce, COMMIT_INTERVAL_MS, nowMs, salt, queue::add);
    store.flush();
    inner.writable = true;
  }

  private List<Long> sequences() {
    return queue.stream().map(QueuedRecord::sequence).toList();
  }

  /** What Kafka Streams puts over the hook: a cache that holds the marker, unless it is off. */
  private static final class Cache implements InvocationHandler {
    private final CommitHook hook = new CommitHook("hook");
    private boolean off;
    private Bytes marker;

    @SuppressWarnings("unchecked") // a proxy knows no type arguments
    KeyValueStore<Bytes, byte[]> proxy() {
      return (KeyValueStore<Bytes, byte[]>)
          Proxy.newProxyInstance(
              Cache.class.getClassLoader(), new Class<?>[] {KeyValueStore.class}, this);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Exception {
      if (!method.getName().equals("put")) {
        return method.invoke(hook, arguments);
      }
      marker = (Bytes) arguments[0];
      if (off) {
        empty();
      }
      return null;
    }

    void empty() {
      if (marker != null) {
        Bytes held = marker;
        marker = null;
        hook.put(held, new byte[0]);
      }
    }
  }

  /** A store in memory that remembers what was deleted, as RocksDB has to. */
  private static final class Inner implements InvocationHandler {
    private final TreeMap<Bytes, byte[]> entries = new TreeMap<>();
    private final TreeSet<Bytes> deleted = new TreeSet<>();
    private int entriesRead;
    private int deletedPassed;

    /** Kafka Streams has a record at hand, whose time and headers a write takes. */
    private boolean writable;

    @SuppressWarnings("unchecked") // a proxy knows no type arguments
    KeyValueStore<Bytes, byte[]> proxy() {
      return (KeyValueStore<Bytes, byte[]>)
          Proxy.newProxyInstance(
              Inner.class.getClassLoader(), new Class<?>[] {KeyValueStore.class}, this);
    }

    List<Long> sequences() {
      return StoredQueue.of(entries).sequences();
    }

    void forget() {
      entriesRead = 0;
      deletedPassed = 0;
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
      return switch (method.getName()) {
        case "name" -> "inner";
        case "get" -> entries.get((Bytes) arguments[0]);
        case "put" -> put((Bytes) arguments[0], (byte[]) arguments[1]);
        case "range" -> range((Bytes) arguments[0], (Bytes) arguments[1]);
        case "commit", "flush" -> null;
        default -> throw new UnsupportedOperationException(method.toString());
      };
    }

    private Object put(Bytes key, byte[] value) {
      assertThat(writable).as("must be written to with a record at hand").isTrue();
      if (value == null) {
        assertThat(entries.remove(key)).as("tombstone of nothing").isNotNull();
        deleted.add(key);
      } else {
        entries.put(key, value);
      }
      return null;
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
      deletedPassed += deleted.subSet(from, true, to, true).size();
      Iterator<Map.Entry<Bytes, byte[]>> range =
          new ArrayList<>(entries.subMap(from, true, to, true).entrySet()).iterator();
      return new KeyValueIterator<>() {
        @Override
        public boolean hasNext() {
          return range.hasNext();
        }

        @Override
        public KeyValue<Bytes, byte[]> next() {
          entriesRead++;
          Map.Entry<Bytes, byte[]> entry = range.next();
          return KeyValue.pair(entry.getKey(), entry.getValue());
        }

        @Override
        public Bytes peekNextKey() {
          throw new UnsupportedOperationException();
        }

        @Override
        public void close() {}
      };
    }
  }
}
