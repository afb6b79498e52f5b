package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MemoryStoreTest {
  private final MemoryStore store = new MemoryStore("s");
  private final NavigableMap<Bytes, byte[]> model = new TreeMap<>();

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void itHoldsWhatASortedMapHolds(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < 5_000; i++) {
      Bytes key = key(random.nextInt(i / 4 + 1), random.nextInt(2));
      // Grows and shrinks in turn.
      put(key, random.nextInt(10) < (i / 500 % 2 == 0 ? 7 : 2) ? new byte[] {(byte) i} : null);
      if (i % 50 == 0) {
        checkAll(key(random.nextInt(i / 4 + 1), 0), key(random.nextInt(i / 4 + 1), 1));
      }
    }
    checkAll(key(0, 0), key(0, 0));
  }

  @Test
  void aQueueThatMovesOnIsKeptWhole() {
    for (int i = 0; i < 10_000; i++) {
      put(key(i, 0), new byte[] {1});
      if (i >= 100) {
        put(key(i - 100, 0), null);
      }
    }
    checkAll(key(9_950, 0), key(9_960, 0));
  }

  @Test
  void theBytesOfAKeyDecideItsPlaceUnsigned() {
    put(Bytes.wrap(new byte[] {(byte) 0x80}), new byte[0]);
    put(Bytes.wrap(new byte[] {0}), new byte[0]);
    put(Bytes.wrap(new byte[] {0x7f, 0}), new byte[0]);
    put(Bytes.wrap(new byte[0]), new byte[0]);
    checkAll(Bytes.wrap(new byte[] {0}), Bytes.wrap(new byte[] {(byte) 0x80}));
  }

  @Test
  void whatIsThereIsNotPutAgainIfAbsent() {
    Bytes key = key(1, 0);
    assertThat(store.putIfAbsent(key, new byte[] {1})).isNull();
    assertThat(store.putIfAbsent(key, new byte[] {2})).containsExactly(1);
    assertThat(store.delete(key)).containsExactly(1);
    assertThat(store.delete(key)).isNull();
    assertThat(store.putIfAbsent(key, new byte[] {3})).isNull();
    store.putAll(List.of(KeyValue.pair(key, new byte[] {4})));
    assertThat(store.get(key)).containsExactly(4);
  }

  @Test
  void itAnswersQueriesForAKeyAndForARange() {
    for (int i = 0; i < 4; i++) {
      put(key(i, 0), new byte[] {(byte) i});
    }
    KeyQuery<Bytes, byte[]> one = KeyQuery.withKey(key(2, 0));
    assertThat(ask(one)).isEqualTo(model.get(key(2, 0)));
    RangeQuery<Bytes, byte[]> some = RangeQuery.withRange(key(1, 0), key(2, 0));
    assertThat(entries(ask(some)))
        .isEqualTo(entries(model.subMap(key(1, 0), true, key(2, 0), true)));
    RangeQuery<Bytes, byte[]> all = RangeQuery.withNoBounds();
    assertThat(entries(ask(all.withDescendingKeys()))).isEqualTo(entries(model.descendingMap()));
  }

  @Test
  void anIteratorGoesOverWhatWasThereWhenItWasMade() {
    put(key(1, 0), new byte[] {1});
    KeyValueIterator<Bytes, byte[]> before = store.all();
    String was = entries(store.all()).toString();
    put(key(0, 0), new byte[] {2});
    put(key(1, 0), null);
    assertThat(entries(before)).hasToString(was);
  }

  @Test
  void anIteratorAtItsEndHasNoNext() {
    try (KeyValueIterator<Bytes, byte[]> entries = store.all()) {
      assertThat(entries.hasNext()).isFalse();
      assertThatThrownBy(entries::next).isInstanceOf(NoSuchElementException.class);
      assertThatThrownBy(entries::peekNextKey).isInstanceOf(NoSuchElementException.class);
    }
  }

  private <R> R ask(Query<R> query) {
    return store.query(query, PositionBound.unbounded(), new QueryConfig(false)).getResult();
  }

  private void put(Bytes key, byte[] value) {
    store.put(key, value);
    if (value == null) {
      model.remove(key);
    } else {
      model.put(key, value);
    }
    assertThat(store.get(key)).isSameAs(value);
    assertThat(store.approximateNumEntries()).isEqualTo(model.size());
  }

  private void checkAll(Bytes from, Bytes to) {
    assertThat(entries(store.all())).isEqualTo(entries(model));
    assertThat(entries(store.reverseAll())).isEqualTo(entries(model.descendingMap()));
    if (from.compareTo(to) <= 0) {
      assertThat(entries(store.range(from, to)))
          .isEqualTo(entries(model.subMap(from, true, to, true)));
    }
    assertThat(entries(store.range(from, null))).isEqualTo(entries(model.tailMap(from, true)));
    assertThat(entries(store.range(null, to))).isEqualTo(entries(model.headMap(to, true)));
  }

  private static List<KeyValue<Bytes, byte[]>> entries(NavigableMap<Bytes, byte[]> map) {
    return map.entrySet().stream().map(e -> KeyValue.pair(e.getKey(), e.getValue())).toList();
  }

  private static List<KeyValue<Bytes, byte[]>> entries(KeyValueIterator<Bytes, byte[]> iterator) {
    List<KeyValue<Bytes, byte[]>> entries = new ArrayList<>();
    try (iterator) {
      iterator.forEachRemaining(entries::add);
    }
    return entries;
  }

  private static Bytes key(int number, int more) {
    return Bytes.wrap(ByteBuffer.allocate(4 + more).putInt(number).array());
  }
}
