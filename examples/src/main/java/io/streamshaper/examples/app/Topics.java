package io.streamshaper.examples.app;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.streams.StreamsConfig;

/** The topics on the broker, which the application reads and writes and never makes. */
final class Topics {
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private Topics() {}

  /**
   * Asks the broker for all of them, and returns their number.
   *
   * @throws KafkaException with what is wrong, in one line
   */
  static int check(AppConfig config) throws InterruptedException {
    Map<String, String> settings = new LinkedHashMap<>();
    config.inputs().forEach(topic -> settings.put(topic, AppConfig.INPUT));
    settings.put(config.output(), AppConfig.OUTPUT);
    if (config.dropped() != null) {
      settings.put(config.dropped(), AppConfig.DROPPED);
    }
    Map<String, Object> admins = new StreamsConfig(config.streams()).getAdminConfigs("check");
    TlsProbe.refuse(new AdminClientConfig(admins));
    Admin admin = Admin.create(admins);
    try {
      var found =
          admin.describeTopics(
              settings.keySet(), new DescribeTopicsOptions().timeoutMs((int) PATIENCE.toMillis()));
      for (Map.Entry<String, KafkaFuture<TopicDescription>> topic :
          found.topicNameValues().entrySet()) {
        check(config, settings.get(topic.getKey()), topic.getKey(), topic.getValue());
      }
      return settings.size();
    } finally {
      admin.close(Duration.ZERO);
    }
  }

  private static void check(
      AppConfig config, String setting, String topic, KafkaFuture<TopicDescription> found)
      throws InterruptedException {
    try {
      found.get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof TimeoutException) {
        throw new ConfigException(
            "no broker answers within %d s at %s, %s %s"
                .formatted(
                    PATIENCE.toSeconds(),
                    config.streams().get(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG),
                    StreamsConfig.SECURITY_PROTOCOL_CONFIG,
                    config
                        .streams()
                        .getOrDefault(StreamsConfig.SECURITY_PROTOCOL_CONFIG, "PLAINTEXT")));
      }
      if (e.getCause() instanceof AuthenticationException) {
        throw new KafkaException(
            "the broker at %s must let us in, did not"
                .formatted(config.streams().get(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG)),
            e.getCause());
      }
      if (e.getCause() instanceof UnknownTopicOrPartitionException
          || e.getCause() instanceof InvalidTopicException) {
        throw new ConfigException(setting + " must be a topic that exists, was " + topic);
      }
      throw new KafkaException(setting + " " + topic + " must be readable, was not", e);
    }
  }
}
