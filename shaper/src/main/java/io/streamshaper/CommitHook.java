package io.streamshaper;

import java.util.List;
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
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * Tells the flow queues that Kafka Streams is about to commit, while what they write still is part
 * of that commit. Kafka Streams has no such call in its public API: {@code flush}, {@code commit}
 * and commit callbacks all come after the offsets are committed, too late for a changelog. But
 * before that it empties its record caches. So this is the innermost store under a cached, unlogged
 * one that holds nothing but a marker: when the cache is emptied, the marker arrives here.
 *
 * <p>A cache that is full, or of size 0, hands the marker on at once; that costs writes, not data.
 */
final class CommitHook implements KeyValueStore<Bytes, byte[]> {
  private static final Bytes MARKER = Bytes.wrap(new byte[0]);
  private static final byte[] ARMED = new byte[0];

  private final String name;
  private Runnable beforeCommit = () -> {};
  private boolean open;

  CommitHook(String name) {
    this.name = name;
  }

  static StoreBuilder<KeyValueStore<Bytes, byte[]>> builder(String name) {
    return Stores.keyValueStoreBuilder(new Supplier(name), Serdes.Bytes(), Serdes.ByteArray())
        .withCachingEnabled()
        .withLoggingDisabled();
  }

  /** Connects the hook under a store, wrapped as the processor context hands it out. */
  static void bind(KeyValueStore<Bytes, byte[]> wrapped, Runnable beforeCommit) {
    QueryResult<Boolean> bound =
        wrapped.query(new Bind(beforeCommit), PositionBound.unbounded(), new QueryConfig(false));
    if (!bound.isSuccess()) {
      throw new IllegalStateException("commit hook not reached: " + bound.getFailureMessage());
    }
  }

  /** Has the hook called at the next commit, at the latest. */
  static void arm(KeyValueStore<Bytes, byte[]> wrapped) {
    wrapped.put(MARKER, ARMED);
  }

  /** A query is the one public call that passes through all that Kafka Streams wraps a store in. */
  private record Bind(Runnable beforeCommit) implements Query<Boolean> {}

  @Override
  @SuppressWarnings("unchecked") // a Bind is a Query<Boolean>
  public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
    if (query instanceof Bind bind) {
      beforeCommit = bind.beforeCommit;
      return (QueryResult<R>) QueryResult.forResult(true);
    }
    return QueryResult.forUnknownQueryType(query, this);
  }

  @Override
  public void put(Bytes key, byte[] value) {
    beforeCommit.run();
  }

  @Override
  public byte[] putIfAbsent(Bytes key, byte[] value) {
    beforeCommit.run();
    return null;
  }

  @Override
  public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
    beforeCommit.run();
  }

  @Override
  public byte[] delete(Bytes key) {
    return null;
  }

  @Override
  public byte[] get(Bytes key) {
    return null;
  }

  @Override
  public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
    throw new UnsupportedOperationException(name + " holds nothing");
  }

  @Override
  public KeyValueIterator<Bytes, byte[]> all() {
    throw new UnsupportedOperationException(name + " holds nothing");
  }

  @Override
  public long approximateNumEntries() {
    return 0;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void init(StateStoreContext context, StateStore root) {
    context.register(root, (key, value) -> {});
    open = true;
  }

  /** Abstract in Kafka Streams before 4.3. */
  @Override
  @SuppressWarnings("deprecation")
  public void flush() {}

  @Override
  public void close() {
    open = false;
  }

  @Override
  public boolean persistent() {
    return false;
  }

  @Override
  public boolean isOpen() {
    return open;
  }

  @Override
  public Position getPosition() {
    return Position.emptyPosition();
  }

  private record Supplier(String name) implements KeyValueBytesStoreSupplier {
    @Override
    public KeyValueStore<Bytes, byte[]> get() {
      return new CommitHook(name);
    }

    @Override
    public String metricsScope() {
      return "shaper-commit-hook";
    }
  }
}
