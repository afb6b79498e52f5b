package io.streamshaper;

import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Queued records in memory: two sorted arrays, since a queue grows at its end. Kafka Streams' own
 * store in memory needs a tree's node and a wrapper for each record, as much again as the record's
 * place in the scheduler. A key that is put anywhere else moves those behind it; that is rare. A
 * key that is deleted stays until a quarter of them are.
 *
 * <p>Thread-safe, since anybody may query a store; an iterator goes over a copy of the arrays.
 */
final class MemoryStore implements KeyValueStore<Bytes, byte[]> {
  private static final int LEAST_CAPACITY = 16;

  private final String name;
  private byte[][] keys = new byte[LEAST_CAPACITY][];

  /** Null where the key was deleted. */
  private byte[][] values = new byte[LEAST_CAPACITY][];

  private int size;
  private int deleted;
  private volatile boolean open;

  MemoryStore(String name) {
    this.name = name;
  }

  static KeyValueBytesStoreSupplier supplier(String name) {
    return new Supplier(name);
  }

  @Override
  public synchronized void put(Bytes key, byte[] value) {
    int index = indexOf(key);
    if (index >= 0) {
      replace(index, value);
    } else if (value != null) {
      insert(~index, key.get(), value);
    }
  }

  @Override
  public synchronized byte[] get(Bytes key) {
    int index = indexOf(key);
    return index < 0 ? null : values[index];
  }

  @Override
  public synchronized byte[] putIfAbsent(Bytes key, byte[] value) {
    byte[] present = get(key);
    if (present == null) {
      put(key, value);
    }
    return present;
  }

  @Override
  public synchronized void putAll(List<KeyValue<Bytes, byte[]>> entries) {
    entries.forEach(entry -> put(entry.key, entry.value));
  }

  @Override
  public synchronized byte[] delete(Bytes key) {
    byte[] present = get(key);
    put(key, null);
    return present;
  }

  @Override
  public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
    return entries(from, to, 1);
  }

  @Override
  public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
    return entries(from, to, -1);
  }

  @Override
  public KeyValueIterator<Bytes, byte[]> all() {
    return range(null, null);
  }

  @Override
  public KeyValueIterator<Bytes, byte[]> reverseAll() {
    return reverseRange(null, null);
  }

  /** Answers what Kafka Streams' own stores answer. */
  @Override
  @SuppressWarnings("unchecked") // at this level all keys are Bytes and all values byte[]
  public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
    if (query instanceof KeyQuery) {
      return (QueryResult<R>)
          QueryResult.forResult(get(((KeyQuery<Bytes, byte[]>) query).getKey()));
    }
    if (query instanceof RangeQuery) {
      RangeQuery<Bytes, byte[]> range = (RangeQuery<Bytes, byte[]>) query;
      int step = range.resultOrder() == ResultOrder.DESCENDING ? -1 : 1;
      return (QueryResult<R>)
          QueryResult.forResult(
              entries(
                  range.getLowerBound().orElse(null), range.getUpperBound().orElse(null), step));
    }
    return QueryResult.forUnknownQueryType(query, this);
  }

  @Override
  public synchronized long approximateNumEntries() {
    return (long) size - deleted;
  }

  private synchronized Entries entries(Bytes from, Bytes to, int step) {
    int first = from == null ? 0 : indexOf(from);
    int last = to == null ? size - 1 : indexOf(to);
    first = first < 0 ? ~first : first;
    int end = Math.max(first, last < 0 ? ~last : last + 1);
    return new Entries(
        Arrays.copyOfRange(keys, first, end), Arrays.copyOfRange(values, first, end), step);
  }

  /** The index of a key; if there is none, the complement of where it would be. */
  private int indexOf(Bytes key) {
    if (size == 0 || Arrays.compareUnsigned(keys[size - 1], key.get()) < 0) {
      return ~size;
    }
    return Arrays.binarySearch(keys, 0, size, key.get(), Arrays::compareUnsigned);
  }

  private void replace(int index, byte[] value) {
    if (values[index] != null) {
      deleted++;
    }
    values[index] = value;
    if (value != null) {
      deleted--;
    } else if (4 * deleted > size) {
      compact();
    }
  }

  private void insert(int index, byte[] key, byte[] value) {
    if (size == keys.length) {
      resize(size + size / 2);
    }
    System.arraycopy(keys, index, keys, index + 1, size - index);
    System.arraycopy(values, index, values, index + 1, size - index);
    keys[index] = key;
    values[index] = value;
    size++;
  }

  private void compact() {
    int kept = 0;
    for (int i = 0; i < size; i++) {
      if (values[i] != null) {
        keys[kept] = keys[i];
        values[kept] = values[i];
        kept++;
      }
    }
    Arrays.fill(keys, kept, size, null);
    Arrays.fill(values, kept, size, null);
    size = kept;
    deleted = 0;
    if (4 * size < keys.length) {
      resize(Math.max(LEAST_CAPACITY, 2 * size));
    }
  }

  private void resize(int capacity) {
    keys = Arrays.copyOf(keys, capacity);
    values = Arrays.copyOf(values, capacity);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void init(StateStoreContext context, StateStore root) {
    context.register(root, (key, value) -> put(Bytes.wrap(key), value));
    open = true;
  }

  /** Abstract in Kafka Streams before 4.3. */
  @Override
  @SuppressWarnings("deprecation")
  public void flush() {}

  @Override
  public synchronized void close() {
    open = false;
    size = 0;
    deleted = 0;
    keys = new byte[LEAST_CAPACITY][];
    values = new byte[LEAST_CAPACITY][];
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

  private static final class Entries implements KeyValueIterator<Bytes, byte[]> {
    private final byte[][] keys;
    private final byte[][] values;
    private final int step;
    private int next;

    Entries(byte[][] keys, byte[][] values, int step) {
      this.keys = keys;
      this.values = values;
      this.step = step;
      next = step > 0 ? 0 : keys.length - 1;
      skipDeleted();
    }

    @Override
    public boolean hasNext() {
      return next >= 0 && next < keys.length;
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
      KeyValue<Bytes, byte[]> entry = new KeyValue<>(peekNextKey(), values[next]);
      next += step;
      skipDeleted();
      return entry;
    }

    @Override
    public Bytes peekNextKey() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      return Bytes.wrap(keys[next]);
    }

    @Override
    public void close() {}

    private void skipDeleted() {
      while (hasNext() && values[next] == null) {
        next += step;
      }
    }
  }

  private record Supplier(String name) implements KeyValueBytesStoreSupplier {
    @Override
    public KeyValueStore<Bytes, byte[]> get() {
      return new MemoryStore(name);
    }

    @Override
    public String metricsScope() {
      return "shaper-memory";
    }
  }
}
