package io.streamshaper.examples.page;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.MeterRegistry;
import io.streamshaper.QueueQuery;
import io.streamshaper.QueueState;
import io.streamshaper.ShaperOptions;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.StateQueryRequest;

/** What the meters and tasks of a shaper tell. From one thread. */
public final class Readings {
  static final int FATTEST = 20;

  private static final List<String> REASONS = List.of("codel", "ceiling", "expired", "overlimit");
  private static final int NAME_LENGTH = 60;

  private final MeterRegistry registry;
  private final String shaper;
  private Map<String, Double> totalsBefore = Map.of();
  private long nanosBefore = System.nanoTime();
  private Buckets sojournsBefore = Buckets.NONE;

  /**
   * @param shaper its name
   */
  public Readings(MeterRegistry registry, String shaper) {
    this.registry = registry;
    this.shaper = shaper;
  }

  /** Records in, forwarded, and dropped by reason, in all. */
  public Map<String, Double> totals() {
    Map<String, Double> totals = new LinkedHashMap<>();
    totals.put("in", total("received", "none"));
    totals.put("forwarded", total("forwarded", "none"));
    REASONS.forEach(reason -> totals.put(reason, total("dropped", reason)));
    return totals;
  }

  /** What has come since the last call. A total that fell, as when a task moves, counts as none. */
  public Map<String, Double> perSecond(Map<String, Double> totals) {
    long nanos = System.nanoTime();
    double seconds = (nanos - nanosBefore) / 1e9;
    Map<String, Double> rates = new LinkedHashMap<>();
    totals.forEach(
        (name, total) ->
            rates.put(name, Math.max(0, total - totalsBefore.getOrDefault(name, total)) / seconds));
    totalsBefore = totals;
    nanosBefore = nanos;
    return rates;
  }

  /** Of what has been forwarded since the last call. */
  Snapshot.Delay sojourns() {
    Buckets sojourns = Buckets.of(registry.find("shaper.sojourn").tag("shaper", shaper).timers());
    Snapshot.Delay delay = sojourns.since(sojournsBefore);
    sojournsBefore = sojourns;
    return delay;
  }

  /** Asks the tasks of this instance; null if one does not answer. */
  public Snapshot.Queue queue(KafkaStreams streams) {
    try {
      Map<Integer, QueryResult<QueueState>> answers =
          streams
              .query(
                  StateQueryRequest.inStore(shaper + "-queue")
                      .withQuery(QueueQuery.fattest(FATTEST)))
              .getPartitionResults();
      return answers.values().stream().allMatch(QueryResult::isSuccess) ? sum(answers) : null;
    } catch (StreamsException notRunning) {
      return null;
    }
  }

  private static Snapshot.Queue sum(Map<Integer, QueryResult<QueueState>> answers) {
    long records = 0;
    long bytes = 0;
    int busyFlows = 0;
    int droppingFlows = 0;
    List<Snapshot.FlowQueue> fattest = new ArrayList<>();
    for (Map.Entry<Integer, QueryResult<QueueState>> answer : answers.entrySet()) {
      QueueState state = answer.getValue().getResult();
      records += state.records();
      bytes += state.bytes();
      busyFlows += state.busyFlows();
      droppingFlows += state.droppingFlows();
      state.flows().forEach(flow -> fattest.add(row(answer.getKey(), flow)));
    }
    fattest.sort(Comparator.comparingLong(Snapshot.FlowQueue::records).reversed());
    return new Snapshot.Queue(
        records, bytes, busyFlows, droppingFlows, fattest.stream().limit(FATTEST).toList());
  }

  private static Snapshot.FlowQueue row(int partition, QueueState.FlowQueue flow) {
    return new Snapshot.FlowQueue(
        name(flow.flow()),
        partition,
        flow.records(),
        flow.bytes(),
        flow.oldestAge().toMillis(),
        flow.dropping());
  }

  /** As text if it is some, else as hexadecimal digits. */
  static String name(Bytes flow) {
    if (flow == null) {
      return "(no key)";
    }
    try {
      String text =
          StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(flow.get())).toString();
      if (text.codePoints().noneMatch(Character::isISOControl)) {
        return shortened(text);
      }
    } catch (CharacterCodingException notText) {
      // As digits, below.
    }
    return shortened(HexFormat.of().formatHex(flow.get()));
  }

  private static String shortened(String name) {
    return name.length() <= NAME_LENGTH ? name : name.substring(0, NAME_LENGTH) + "…";
  }

  /** Records that this instance has still to read, as far as its consumers know. */
  public static long unread(KafkaStreams streams) {
    return streams.metrics().entrySet().stream()
        .filter(metric -> metric.getKey().name().equals("records-lag"))
        .filter(
            metric ->
                !metric.getKey().tags().getOrDefault("client-id", "").contains("restore-consumer"))
        .mapToLong(metric -> ((Number) metric.getValue().metricValue()).longValue())
        .sum();
  }

  /** The settings in force, by name. */
  public static List<Snapshot.Setting> settings(ShaperOptions options) {
    Map<String, Object> defaults = ShaperOptions.defaults().effective();
    return options.effective().entrySet().stream()
        .map(
            entry ->
                new Snapshot.Setting(
                    entry.getKey(),
                    entry.getValue(),
                    !Objects.equals(entry.getValue(), defaults.get(entry.getKey())),
                    ShaperOptions.configDef().configKeys().get(entry.getKey()).documentation))
        .sorted(Comparator.comparing(Snapshot.Setting::name))
        .toList();
  }

  private double total(String outcome, String reason) {
    return registry
        .find("shaper.records")
        .tags("shaper", shaper, "outcome", outcome, "reason", reason)
        .functionCounters()
        .stream()
        .mapToDouble(FunctionCounter::count)
        .sum();
  }
}
