package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.Punctuator;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A task whose clock the test moves, also within a call, as a step behind the shaper that takes
 * time does; and a store that checks how it is asked. Where Kafka Streams has no say, it is absent.
 */
final class FakeTask {
  /** What is stored. */
  final TreeMap<Bytes, byte[]> entries = new TreeMap<>();

  private final BiConsumer<Record<?, ?>, String> downstream;
  private Processor<String, String, String, String> processor;
  private Punctuator punctuator;
  private CommitHook hook = new CommitHook("hook");
  private FlowQueueStore queue;
  long nowMs = TestTopology.START_MS;

  /** How far the clock goes back at each look. */
  long backMs;

  int openIterators;

  /** Scheduled and not cancelled. */
  int punctuations;

  int ranges;

  /**
   * @param downstream takes each record and the child that it is forwarded to
   */
  FakeTask(BiConsumer<Record<?, ?>, String> downstream) {
    this.downstream = downstream;
  }

  /** Starts, or starts anew with what was committed. */
  void start(Shaper<String, String> shaper) {
    close();
    queue = new FlowQueueStore(innerStore(), false, true);
    hook = new CommitHook(shaper.hookName());
    Map<String, Object> stores = Map.of(shaper.storeName(), queue, shaper.hookName(), hookStore());
    processor = shaper.get();
    processor.init(context(stores));
  }

  void pipe(String key, String value, long timestampMs) {
    processor.process(new Record<>(key, value, timestampMs));
  }

  void tick() {
    punctuator.punctuate(nowMs);
  }

  /** Writes what a commit writes, ahead of it and behind it. */
  @SuppressWarnings("deprecation") // what every version has
  void commit() {
    hook.put(Bytes.wrap(new byte[0]), new byte[0]);
    queue.flush();
  }

  void close() {
    if (processor != null) {
      processor.close();
    }
  }

  /** Spoils what is stored. */
  void truncateStored() {
    entries.replaceAll((key, value) -> key.get().length < Long.BYTES ? value : new byte[3]);
  }

  private ProcessorContext<String, String> context(Map<String, Object> stores) {
    return proxy(
        ProcessorContext.class,
        (self, method, arguments) ->
            switch (method.getName()) {
              case "applicationId" -> "app";
              case "taskId" -> new TaskId(0, 0);
              case "appConfigs" -> Map.of();
              case "keySerde", "valueSerde" -> Serdes.String();
              case "currentSystemTimeMs" -> nowMs -= backMs;
              case "recordMetadata" -> Optional.empty();
              case "getStateStore" -> stores.get(arguments[0]);
              case "schedule" -> {
                punctuator = (Punctuator) arguments[2];
                punctuations++;
                yield (Cancellable) () -> punctuations--;
              }
              case "forward" -> {
                downstream.accept((Record<?, ?>) arguments[0], (String) arguments[1]);
                yield null;
              }
              default -> throw new UnsupportedOperationException(method.toString());
            });
  }

  /** Holds the marker back, as a cache does, but nobody has it emptied. */
  KeyValueStore<Bytes, byte[]> hookStore() {
    return proxy(
        KeyValueStore.class,
        (self, method, arguments) ->
            method.getName().equals("put") ? null : method.invoke(hook, arguments));
  }

  KeyValueStore<Bytes, byte[]> innerStore() {
    return proxy(
        KeyValueStore.class,
        (self, method, arguments) ->
            switch (method.getName()) {
              case "name" -> "inner";
              case "get" -> entries.get((Bytes) arguments[0]);
              case "put" ->
                  arguments[1] == null
                      ? entries.remove((Bytes) arguments[0])
                      : entries.put((Bytes) arguments[0], (byte[]) arguments[1]);
              case "range" -> range((Bytes) arguments[0], (Bytes) arguments[1]);
              case "close", "flush" -> null;
              default -> throw new UnsupportedOperationException(method.toString());
            });
  }

  private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
    assertThat(from).as("lower bound").isNotNull();
    assertThat(to).as("upper bound").isNotNull();
    openIterators++;
    ranges++;
    Iterator<Map.Entry<Bytes, byte[]>> range =
        List.copyOf(entries.subMap(from, true, to, true).entrySet()).iterator();
    return new KeyValueIterator<>() {
      @Override
      public boolean hasNext() {
        return range.hasNext();
      }

      @Override
      public KeyValue<Bytes, byte[]> next() {
        Map.Entry<Bytes, byte[]> entry = range.next();
        return KeyValue.pair(entry.getKey(), entry.getValue());
      }

      @Override
      public Bytes peekNextKey() {
        throw new UnsupportedOperationException();
      }

      @Override
      public void close() {
        openIterators--;
      }
    };
  }

  @SuppressWarnings("unchecked") // a proxy knows no type arguments
  private static <T> T proxy(Class<? super T> type, InvocationHandler handler) {
    return (T)
        Proxy.newProxyInstance(FakeTask.class.getClassLoader(), new Class<?>[] {type}, handler);
  }
}
