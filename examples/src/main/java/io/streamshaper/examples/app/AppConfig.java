package io.streamshaper.examples.app;

import io.streamshaper.ShaperOptions;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.apache.commons.text.similarity.LevenshteinDistance;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.StreamsConfig;

/**
 * What a properties file decides: the topics, the flow and the HTTP port here, {@code shaper.*} as
 * {@link ShaperOptions}, and all else for Kafka Streams.
 *
 * @param dropped null: what is dropped is gone
 * @param streams what Kafka Streams gets
 */
record AppConfig(
    List<String> inputs,
    String output,
    String dropped,
    FlowRule flow,
    String bind,
    int port,
    boolean page,
    ShaperOptions options,
    Map<String, Object> streams) {
  static final String INPUT = "input.topic";
  static final String OUTPUT = "output.topic";
  static final String DROPPED = "dropped.topic";
  static final String FLOW = "app.flow";
  static final String BIND = "app.bind";
  static final String PORT = "app.port";
  static final String PAGE = "app.page";

  /** The value of {@code dropped.topic} that stands for no topic. */
  static final String DISCARD = "discard";

  static final ConfigDef OWN = define();

  private static final Set<String> OURS = ours();

  /** Where Kafka Streams would decide otherwise. */
  static final Map<String, Object> STREAMS_DEFAULTS =
      Map.of(
          StreamsConfig.POLL_MS_CONFIG,
          5, // the shaper serves between polls
          StreamsConfig.DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG,
          ArrivalWithoutTimestamp.class);

  /** What a name may begin with and go to one of Kafka Streams' clients, or topics. */
  private static final List<String> CLIENT_PREFIXES =
      List.of(
          StreamsConfig.MAIN_CONSUMER_PREFIX,
          StreamsConfig.RESTORE_CONSUMER_PREFIX,
          StreamsConfig.GLOBAL_CONSUMER_PREFIX,
          StreamsConfig.CONSUMER_PREFIX,
          StreamsConfig.PRODUCER_PREFIX,
          StreamsConfig.ADMIN_CLIENT_PREFIX);

  /** A name this near to one that means something is a mistake, not a name of the user's own. */
  private static final int SLIP = 2;

  /** Names further away are no help. */
  private static final int HINT = 6;

  /**
   * Checks everything that can be checked without a broker.
   *
   * @throws ConfigException with what is wrong, in one line
   */
  static AppConfig of(ConfigFile file) {
    Map<String, String> values = file.values();
    values.keySet().forEach(AppConfig::refuseUnknown);
    Map<String, Object> own = OWN.parse(values);
    List<String> inputs = topics(own);
    String output = (String) own.get(OUTPUT);
    String dropped = (String) own.get(DROPPED);
    refuseLoop(OUTPUT, output, inputs);
    refuseLoop(DROPPED, dropped, inputs);
    if (dropped.equals(output)) {
      throw new ConfigException(DROPPED + " must differ from " + OUTPUT + ", was " + dropped);
    }
    ShaperOptions options = ShaperOptions.from(values);
    return new AppConfig(
        inputs,
        output,
        dropped.equals(DISCARD) ? null : dropped,
        FlowRule.of(FLOW, (String) own.get(FLOW)),
        (String) own.get(BIND),
        (Integer) own.get(PORT),
        (Boolean) own.get(PAGE),
        options,
        streams(values));
  }

  private static ConfigDef define() {
    return new ConfigDef()
        .define(
            INPUT,
            ConfigDef.Type.LIST,
            ConfigDef.NO_DEFAULT_VALUE,
            Importance.HIGH,
            "Topic to read, or several with commas between them.")
        .define(
            OUTPUT,
            ConfigDef.Type.STRING,
            ConfigDef.NO_DEFAULT_VALUE,
            rule(text -> !text.isBlank(), "name a topic"),
            Importance.HIGH,
            "Topic for what is forwarded.")
        .define(
            DROPPED,
            ConfigDef.Type.STRING,
            ConfigDef.NO_DEFAULT_VALUE,
            rule(text -> !text.isBlank(), "name a topic, or be " + DISCARD),
            Importance.HIGH,
            "Topic for what is dropped, or discard.")
        .define(
            FLOW,
            ConfigDef.Type.STRING,
            FlowRule.KEY,
            Importance.MEDIUM,
            "What makes a flow: key, header:NAME, or json:/POINTER into the value. Default key.")
        .define(
            BIND,
            ConfigDef.Type.STRING,
            "127.0.0.1",
            rule(text -> !text.isBlank(), "be an address of this machine"),
            Importance.MEDIUM,
            "Address for HTTP. Default 127.0.0.1: nobody but this machine.")
        .define(
            PORT,
            ConfigDef.Type.INT,
            8080,
            ConfigDef.LambdaValidator.with(
                (name, value) -> {
                  if ((Integer) value < 0 || (Integer) value > 65_535) {
                    throw new ConfigException(name + " must be between 0 and 65535, was " + value);
                  }
                },
                () -> "0 to 65535"),
            Importance.MEDIUM,
            "Port for HTTP, 0 for any. Default 8080.")
        .define(
            PAGE,
            ConfigDef.Type.BOOLEAN,
            false,
            Importance.MEDIUM,
            "Whether to show the shaper on a web page, too. Default false: it names flows.");
  }

  private static Set<String> ours() {
    Set<String> names = new TreeSet<>(OWN.names());
    names.addAll(ShaperOptions.configDef().names());
    return names;
  }

  private static ConfigDef.Validator rule(Predicate<String> predicate, String must) {
    return ConfigDef.LambdaValidator.with(
        (name, value) -> {
          if (!predicate.test((String) value)) {
            throw new ConfigException(name + " must " + must + ", was '" + value + "'");
          }
        },
        () -> must);
  }

  private static List<String> topics(Map<String, Object> own) {
    @SuppressWarnings("unchecked") // ConfigDef.Type.LIST
    List<String> topics = (List<String>) own.get(INPUT);
    if (topics.isEmpty() || topics.contains("") || Set.copyOf(topics).size() < topics.size()) {
      throw new ConfigException(
          INPUT + " must name topics, each once, was '" + String.join(",", topics) + "'");
    }
    return List.copyOf(topics);
  }

  private static void refuseLoop(String setting, String topic, List<String> inputs) {
    if (inputs.contains(topic)) {
      throw new ConfigException(setting + " must not be an input topic, was " + topic);
    }
  }

  /**
   * Kafka takes names that it does not know, for extensions. What begins as ours do is none of
   * those, and what is nearly a known name is a slip.
   */
  private static void refuseUnknown(String name) {
    Set<String> known = new TreeSet<>(OURS);
    boolean ours = known.stream().anyMatch(own -> name.startsWith(family(own)));
    if (!ours) {
      known.addAll(kafkaNames());
    }
    String bare = ours ? name : withoutPrefix(name);
    String nearest = nearest(bare, known, ours ? HINT : SLIP);
    if (bare.equals(nearest) || (!ours && nearest == null)) {
      return;
    }
    throw new ConfigException(
        "unknown " + name + (nearest == null ? "" : ", did you mean " + nearest + "?"));
  }

  private static String family(String own) {
    return own.substring(0, own.indexOf('.') + 1);
  }

  private static String nearest(String name, Set<String> known, int within) {
    LevenshteinDistance distance = new LevenshteinDistance(within);
    String nearest = null;
    int least = within + 1;
    for (String candidate : known) {
      int edits = distance.apply(name, candidate);
      if (edits >= 0 && edits < least) {
        nearest = candidate;
        least = edits;
      }
    }
    return nearest;
  }

  private static Set<String> kafkaNames() {
    Set<String> names = new HashSet<>(StreamsConfig.configDef().names());
    names.addAll(ConsumerConfig.configNames());
    names.addAll(ProducerConfig.configNames());
    names.addAll(AdminClientConfig.configNames());
    return names;
  }

  /** The name as Kafka Streams' clients know it. */
  static String withoutPrefix(String name) {
    return CLIENT_PREFIXES.stream()
        .filter(name::startsWith)
        .findFirst()
        .map(prefix -> name.substring(prefix.length()))
        .orElse(name);
  }

  private static Map<String, Object> streams(Map<String, String> values) {
    Map<String, Object> streams = new HashMap<>(STREAMS_DEFAULTS);
    values.forEach(
        (name, value) -> {
          if (!OWN.names().contains(name) && !name.startsWith("shaper.")) {
            streams.put(name, value);
          }
        });
    check(new StreamsConfig(streams));
    return streams;
  }

  int threads() {
    return new StreamsConfig(streams).getInt(StreamsConfig.NUM_STREAM_THREADS_CONFIG);
  }

  /** What Kafka Streams would see only when it makes its clients, or never. */
  private static void check(StreamsConfig config) {
    int threads = config.getInt(StreamsConfig.NUM_STREAM_THREADS_CONFIG);
    if (threads < 1) {
      throw new ConfigException(
          StreamsConfig.NUM_STREAM_THREADS_CONFIG + " must be at least 1, was " + threads);
    }
    Map<String, Object> consumer = config.getMainConsumerConfigs("check", "check", 0);
    consumer.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    consumer.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    Map<String, Object> producer = config.getProducerConfigs("check");
    producer.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    producer.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    new ConsumerConfig(consumer); // refuses
    new ProducerConfig(producer);
    new AdminClientConfig(config.getAdminConfigs("check"));
  }
}
