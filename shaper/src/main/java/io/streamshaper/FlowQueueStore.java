package io.streamshaper;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The flow queues at rest: in memory between commits, durable at every commit. Only the net change
 * since the last commit is written, so a record that comes and goes within a quarter of the commit
 * interval never reaches the changelog; what does is written in {@link Block}s. Belongs to one task
 * and its thread.
 *
 * <p>Under exactly-once, what is written at a commit is part of its transaction. Under
 * at-least-once, what was forwarded and the departure of its stored copy go to different
 * partitions, and a crash between the two acknowledgements could leave the record in neither: so a
 * departure is held back until the commit that made it durable has succeeded.
 */
final class FlowQueueStore implements StateStore {
  /** Sorts before every record: sequences start far from 0. */
  private static final Bytes POSITION_KEY = Bytes.wrap(new byte[] {0});

  /** Sorts behind every record: sequences are positive. */
  private static final Bytes END = Bytes.wrap(new byte[] {(byte) 0x80});

  /** Format 2, big endian: version (1), sequence (8), stream time in ms (8), CRC-32C (4). */
  private static final byte POSITION_VERSION = 2;

  private static final int POSITION_CHECKED_BYTES = 1 + 2 * Long.BYTES;
  private static final int POSITION_BYTES = POSITION_CHECKED_BYTES + Integer.BYTES;
  private static final long NO_STREAM_TIME = -1;

  /** Room for a million records a millisecond. */
  private static final int SEQUENCE_BITS = 20;

  /** Many more than the records that an instance takes in between two commits. */
  static final long SALTS = 1L << 32;

  /** From 4.3 on, Kafka Streams tells its stores of every commit that succeeded. */
  private static final boolean TOLD_OF_COMMITS =
      Arrays.stream(StateStore.class.getMethods()).anyMatch(m -> m.getName().equals("commit"));

  private final KeyValueStore<Bytes, byte[]> inner;
  private final boolean spill;
  private final boolean toldOfCommits;
  private final Inquiries inquiries = new Inquiries();

  private KeyValueStore<Bytes, byte[]> hook;
  private boolean exactlyOnce;
  private long commitIntervalMs;
  private boolean armed;

  /** Until the first record or tick, Kafka Streams cannot take a write, but tells of a commit. */
  private boolean writable;

  private QueuedRecord oldest;
  private QueuedRecord newest;
  private QueuedRecord firstUnsaved;
  private long unsavedBytes;
  private long nextSequence;

  /** What comes before it has waited long for a commit: see {@link #add}. */
  private long overdueSequence;

  private long markedSequence;
  private long markedMs;

  /** The block whose value was read last, if the store is on disk. */
  private Block readBlock;

  private final Departures departures = new Departures();

  /** Those that wait for a commit that nobody will tell of: see {@link #tick}. */
  private final Departures waiting = new Departures();

  private long waitingSinceMs;
  private long latestTickMs;
  private boolean commitDue;

  private long streamTimeMs = NO_STREAM_TIME;
  private long savedStreamTimeMs = NO_STREAM_TIME;
  private long savedHead;

  FlowQueueStore(KeyValueStore<Bytes, byte[]> inner, boolean spill, boolean toldOfCommits) {
    this.inner = inner;
    this.spill = spill;
    this.toldOfCommits = toldOfCommits;
  }

  static StoreBuilder<FlowQueueStore> builder(
      String name, ShaperOptions.Store kind, Map<String, String> changelogConfig) {
    return new Builder(name, kind, changelogConfig);
  }

  /**
   * Starts over with what is stored, oldest first. A recycled task keeps its store object, so this
   * clears what an earlier life left in memory.
   *
   * @param hook the commit hook's store, as the processor context hands it out
   * @param commitIntervalMs how often Kafka Streams commits
   * @param salt a random number below {@link #SALTS}, which keeps the sequences of two instances
   *     apart that start from the same state at the same time
   * @param restored takes each record
   * @throws SerializationException if something stored cannot be read
   */
  void open(
      KeyValueStore<Bytes, byte[]> hook,
      boolean exactlyOnce,
      long commitIntervalMs,
      long nowMs,
      long salt,
      Consumer<QueuedRecord> restored) {
    this.hook = hook;
    this.exactlyOnce = exactlyOnce;
    this.commitIntervalMs = commitIntervalMs;
    CommitHook.bind(hook, this::beforeCommit);
    armed = false;
    writable = false;
    oldest = null;
    newest = null;
    firstUnsaved = null;
    unsavedBytes = 0;
    overdueSequence = 0;
    markedSequence = 0;
    markedMs = 0;
    departures.clear();
    waiting.clear();
    waitingSinceMs = 0;
    latestTickMs = 0;
    commitDue = false;
    readBlock = null;
    long head = readPosition();
    nextSequence = head;
    readBlocks(head, readRemainders(head), restored);
    // Never a sequence twice: a late write of a fenced-off instance, whose clock may be ahead of
    // ours, would overwrite or delete its successor.
    nextSequence = Math.max(nextSequence, nowMs << SEQUENCE_BITS) + salt;
  }

  /** By the sequences of their blocks. */
  private Map<Long, Long> readRemainders(long head) {
    Map<Long, Long> remainders = new HashMap<>();
    try (KeyValueIterator<Bytes, byte[]> stored =
        inner.range(Block.remainderKey(head), Block.remainderKey(Long.MAX_VALUE))) {
      while (stored.hasNext()) {
        KeyValue<Bytes, byte[]> entry = stored.next();
        remainders.put(
            Block.sequenceOfRemainder(entry.key),
            Block.readRemainder(name(), entry.key, entry.value));
      }
    }
    return remainders;
  }

  private void readBlocks(long head, Map<Long, Long> remainders, Consumer<QueuedRecord> restored) {
    try (KeyValueIterator<Bytes, byte[]> stored =
        inner.range(QueuedRecord.storeKey(null, head), END)) {
      while (stored.hasNext()) {
        KeyValue<Bytes, byte[]> entry = stored.next();
        Long remainder = remainders.remove(ByteBuffer.wrap(entry.key.get()).getLong());
        Block block =
            Block.read(
                name(),
                entry.key,
                entry.value,
                remainder,
                queued -> {
                  append(queued);
                  nextSequence = Math.max(nextSequence, queued.sequence() + 1);
                  restored.accept(queued);
                });
        if (spill) {
          block.hold(null);
        }
        departures.addIfEmpty(block);
      }
    }
    // A late write of a fenced-off instance under at-least-once.
    for (long sequence : remainders.keySet()) {
      departures.addIfEmpty(Block.gone(sequence));
      nextSequence = Math.max(nextSequence, sequence + 1); // else it would be another block's
    }
  }

  /** Questions about the queue, for the task to answer. */
  Inquiries inquiries() {
    return inquiries;
  }

  /** The place in the order of arrival for the next record. */
  long nextSequence() {
    return nextSequence++;
  }

  /**
   * Takes in a record; durable from the next commit on. What has waited for long will hardly leave
   * before the commit, and is written ahead of it: all at once, what has arrived would make the
   * thread wait for the broker.
   */
  void add(QueuedRecord queued) {
    if (firstUnsaved != null && firstUnsaved.sequence() < overdueSequence) {
      saveBlock(overdueSequence);
    }
    append(queued);
    unsavedBytes += queued.bytes();
    if (firstUnsaved == null) {
      firstUnsaved = queued;
    }
    arm();
  }

  /** Lets go of a record that leaves; must be called before it is forwarded. */
  void remove(QueuedRecord queued) {
    if (queued == firstUnsaved) {
      firstUnsaved = queued.newer;
    }
    unlink(queued);
    if (queued.block() == null) {
      unsavedBytes -= queued.bytes();
    } else {
      departures.add(queued.block(), 1L << queued.index());
      arm();
    }
  }

  /** The bytes of a record; null if it has not been saved yet. */
  byte[] valueOf(QueuedRecord queued) {
    Block block = queued.block();
    if (block == null) {
      return null;
    }
    read(block);
    return block.valueOf(name(), queued);
  }

  /** Neighbours mostly leave together, so a value that had to be read is held until the next is. */
  private void read(Block block) {
    if (block.value() != null) {
      return;
    }
    byte[] stored = inner.get(block.storeKey());
    if (stored == null) {
      throw new SerializationException(
          "store "
              + name()
              + ", key "
              + HexFormat.of().formatHex(block.storeKey().get())
              + ": must be a block of queued records, was nothing");
    }
    if (readBlock != null) {
      readBlock.hold(null);
    }
    readBlock = block;
    block.hold(stored);
  }

  /** The largest timestamp seen when last saved; -1 if unknown. */
  long streamTimeMs() {
    return streamTimeMs;
  }

  /** Has stream time saved with the next commit. */
  void advanceStreamTime(long timeMs) {
    streamTimeMs = timeMs;
    arm();
  }

  /**
   * Must be called at every tick of the wall clock. Before 4.3, Kafka Streams tells no store of a
   * commit. But between two ticks it looks whether the commit interval is over, and commits: so
   * what left before a first tick has been committed when another comes after one that is more than
   * an interval later. After the clock stepped back, it commits no sooner than the clock has caught
   * up, and until then a tick says nothing.
   */
  void tick(long nowMs) {
    writable = true;
    markOverdue(nowMs);
    if (toldOfCommits || exactlyOnce) {
      return;
    }
    if (nowMs < latestTickMs) {
      commitDue = false;
      return;
    }
    latestTickMs = nowMs;
    if (commitDue) {
      commitDue = false;
      savePosition(waiting.write());
    }
    if (!waiting.isEmpty()) {
      commitDue = nowMs - waitingSinceMs > commitIntervalMs;
    } else if (!departures.isEmpty()) {
      waitingSinceMs = nowMs;
      waiting.takeAll(departures);
    }
  }

  /** What came before the mark of a quarter of the commit interval ago is overdue by now. */
  private void markOverdue(long nowMs) {
    if (Math.abs(nowMs - markedMs) >= commitIntervalMs / 4) {
      overdueSequence = markedSequence;
      markedSequence = nextSequence;
      markedMs = nowMs;
    }
  }

  /** Arms before anything is forwarded: a cache that is full or off fires at once. */
  private void arm() {
    writable = true;
    if (!armed) {
      armed = true;
      CommitHook.arm(hook);
    }
  }

  private void beforeCommit() {
    armed = false;
    while (firstUnsaved != null) {
      saveBlock(Long.MAX_VALUE);
    }
    savePosition(exactlyOnce && departures.write());
  }

  /** What left is durable where it went. */
  private void afterCommit() {
    if (!exactlyOnce && writable) {
      boolean shrank = waiting.write();
      shrank |= departures.write();
      if (shrank) {
        savePosition(true);
      }
    }
  }

  private void saveBlock(long endSequence) {
    Block block = Block.of(firstUnsaved, endSequence);
    inner.put(block.storeKey(), block.value());
    if (spill) {
      block.hold(null);
    }
    while (firstUnsaved != null && firstUnsaved.block() == block) {
      unsavedBytes -= firstUnsaved.bytes();
      firstUnsaved = firstUnsaved.newer;
    }
  }

  private void saveDepartures(Block block, long left) {
    block.leave(left);
    if (block.isEmpty()) {
      delete(block);
      return;
    }
    if (block.isWasteful()) {
      read(block);
      block.compact();
      inner.put(block.storeKey(), block.value());
    }
    inner.put(block.remainderKey(), block.remainder());
  }

  private void delete(Block block) {
    if (block.isStored()) {
      inner.put(block.storeKey(), null);
    }
    if (block.hasRemainder()) {
      inner.put(block.remainderKey(), null);
    }
  }

  /** Saves where the first record is, so that a restart need not search what was deleted. */
  private void savePosition(boolean shrank) {
    if (!shrank && streamTimeMs == savedStreamTimeMs) {
      return;
    }
    long head = oldest == null ? nextSequence : storedSequence(oldest);
    head = Math.min(head, Math.min(departures.lowestSequence, waiting.lowestSequence));
    if (head == savedHead && streamTimeMs == savedStreamTimeMs) {
      return;
    }
    ByteBuffer position = ByteBuffer.allocate(POSITION_BYTES);
    position.put(POSITION_VERSION).putLong(head).putLong(streamTimeMs);
    position.putInt(checksum(position.array()));
    inner.put(POSITION_KEY, position.array());
    savedStreamTimeMs = streamTimeMs;
    savedHead = head;
  }

  private static long storedSequence(QueuedRecord queued) {
    return queued.block() == null ? queued.sequence() : queued.block().sequence();
  }

  /** Returns the lowest sequence that a stored block can have. */
  private long readPosition() {
    byte[] stored = inner.get(POSITION_KEY);
    streamTimeMs = NO_STREAM_TIME;
    long head = 0;
    if (stored != null) {
      if (stored.length != POSITION_BYTES
          || stored[0] != POSITION_VERSION
          || ByteBuffer.wrap(stored).getInt(POSITION_CHECKED_BYTES) != checksum(stored)) {
        throw new SerializationException(
            "store "
                + name()
                + ", key "
                + HexFormat.of().formatHex(POSITION_KEY.get())
                + ": must be a position of format "
                + POSITION_VERSION
                + ", was "
                + HexFormat.of().formatHex(stored));
      }
      ByteBuffer position = ByteBuffer.wrap(stored, 1, 2 * Long.BYTES);
      head = position.getLong();
      streamTimeMs = position.getLong();
    }
    savedStreamTimeMs = streamTimeMs;
    savedHead = head;
    return head;
  }

  /** A position that is wrong would pass over records in silence. */
  private static int checksum(byte[] position) {
    CRC32C crc = new CRC32C();
    crc.update(position, 0, POSITION_CHECKED_BYTES);
    return (int) crc.getValue();
  }

  private void append(QueuedRecord queued) {
    queued.older = newest;
    if (newest == null) {
      oldest = queued;
    } else {
      newest.newer = queued;
    }
    newest = queued;
  }

  private void unlink(QueuedRecord queued) {
    if (queued.older == null) {
      oldest = queued.newer;
    } else {
      queued.older.newer = queued.newer;
    }
    if (queued.newer == null) {
      newest = queued.older;
    } else {
      queued.newer.older = queued.older;
    }
    queued.older = null;
    queued.newer = null;
  }

  @Override
  public String name() {
    return inner.name();
  }

  @Override
  public void init(StateStoreContext context, StateStore root) {
    inner.init(context, root);
  }

  @Override
  public void commit(Map<TopicPartition, Long> changelogOffsets) {
    afterCommit();
    inner.commit(changelogOffsets);
  }

  /** Called in place of {@link #commit} by Kafka Streams before 4.3. */
  @Override
  @SuppressWarnings("deprecation")
  public void flush() {
    afterCommit();
    inner.flush();
  }

  @Override
  public Long committedOffset(TopicPartition partition) {
    return inner.committedOffset(partition);
  }

  @Override
  @SuppressWarnings("deprecation")
  public boolean managesOffsets() {
    return inner.managesOffsets();
  }

  @Override
  public long approximateNumUncommittedBytes() {
    return inner.approximateNumUncommittedBytes() + unsavedBytes;
  }

  @Override
  public void close() {
    inner.close();
  }

  @Override
  public boolean persistent() {
    return inner.persistent();
  }

  @Override
  public boolean isOpen() {
    return inner.isOpen();
  }

  @Override
  @SuppressWarnings("unchecked") // a QueueQuery is a Query<QueueState>
  public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
    if (query instanceof QueueQuery queueQuery) {
      return (QueryResult<R>) inquiries.ask(queueQuery);
    }
    return inner.query(query, bound, config);
  }

  @Override
  public Position getPosition() {
    return inner.getPosition();
  }

  /** Of records that are still stored. */
  private final class Departures {
    /** A bit for each index. */
    private final Map<Block, Long> indices = new LinkedHashMap<>();

    private long lowestSequence = Long.MAX_VALUE;

    boolean isEmpty() {
      return indices.isEmpty();
    }

    void add(Block block, long left) {
      indices.merge(block, left, (some, more) -> some | more);
      lowestSequence = Math.min(lowestSequence, block.sequence());
    }

    /** Takes what is stored of a block that no record remains of. */
    void addIfEmpty(Block block) {
      if (block.isEmpty()) {
        add(block, 0);
      }
    }

    void takeAll(Departures others) {
      others.indices.forEach(this::add);
      others.clear();
    }

    /** Returns whether there were any. */
    boolean write() {
      boolean any = !indices.isEmpty();
      indices.forEach(FlowQueueStore.this::saveDepartures);
      clear();
      return any;
    }

    void clear() {
      indices.clear();
      lowestSequence = Long.MAX_VALUE;
    }
  }

  /** Caching stays off: what counts as one change is decided here. */
  private static final class Builder implements StoreBuilder<FlowQueueStore> {
    private final StoreBuilder<KeyValueStore<Bytes, byte[]>> inner;
    private final boolean spill;

    Builder(String name, ShaperOptions.Store kind, Map<String, String> changelogConfig) {
      spill = kind == ShaperOptions.Store.ROCKSDB;
      inner =
          Stores.keyValueStoreBuilder(
                  spill ? Stores.persistentKeyValueStore(name) : Stores.inMemoryKeyValueStore(name),
                  Serdes.Bytes(),
                  Serdes.ByteArray())
              .withCachingDisabled()
              .withLoggingEnabled(changelogConfig);
    }

    @Override
    public FlowQueueStore build() {
      return new FlowQueueStore(inner.build(), spill, TOLD_OF_COMMITS);
    }

    @Override
    public StoreBuilder<FlowQueueStore> withCachingEnabled() {
      throw new UnsupportedOperationException("flow queues must not be cached");
    }

    @Override
    public StoreBuilder<FlowQueueStore> withCachingDisabled() {
      return this;
    }

    @Override
    public StoreBuilder<FlowQueueStore> withLoggingEnabled(Map<String, String> config) {
      inner.withLoggingEnabled(config);
      return this;
    }

    @Override
    public StoreBuilder<FlowQueueStore> withLoggingDisabled() {
      throw new UnsupportedOperationException("flow queues must be logged");
    }

    @Override
    public Map<String, String> logConfig() {
      return inner.logConfig();
    }

    @Override
    public boolean loggingEnabled() {
      return inner.loggingEnabled();
    }

    @Override
    public String name() {
      return inner.name();
    }
  }
}
