package io.streamshaper.examples.app;

import io.streamshaper.ShaperOptions;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.streams.StreamsConfig;

/** The settings in force, beside their defaults: ours all, Kafka's as far as they are set. */
final class Settings {
  private static final int[] WIDTHS = {28, 28, 21};

  /** What Kafka calls a secret has {@link Type#PASSWORD}; extensions have only names. */
  private static final List<String> SECRET_WORDS =
      List.of(
          "password", "passwd", "secret", "token", "credential", "jaas", "private", "user.info");

  private final AppConfig config;
  private final ConfigFile file;

  Settings(AppConfig config, ConfigFile file) {
    this.config = config;
    this.file = file;
  }

  /** A table of 80 columns at most. */
  void print(PrintWriter out) {
    row(out, "setting", "value", "default");
    Map<String, Object> ownDefaults = AppConfig.OWN.defaultValues();
    Map<String, Object> own = AppConfig.OWN.parse(file.values());
    AppConfig.OWN.names().stream()
        .sorted()
        .forEach(
            name -> row(out, name, own.get(name), ownDefaults.getOrDefault(name, "must be set")));
    Map<String, Object> shaperDefaults = ShaperOptions.defaults().effective();
    new TreeMap<>(config.options().effective())
        .forEach((name, value) -> row(out, name, value, shaperDefaults.get(name)));
    new TreeMap<>(config.streams()).forEach((name, value) -> kafkaRow(out, name, value));
    out.flush();
  }

  private void kafkaRow(PrintWriter out, String name, Object value) {
    String written = file.written(name);
    Object shown = isSecret(name) ? ConfigFile.MASK : written == null ? value : written;
    Object fallback =
        AppConfig.STREAMS_DEFAULTS.getOrDefault(
            name,
            definitions()
                .map(definition -> definition.defaultValues().get(AppConfig.withoutPrefix(name)))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse("none"));
    row(out, name, shown, fallback);
  }

  private static boolean isSecret(String name) {
    String bare = AppConfig.withoutPrefix(name).toLowerCase(Locale.ROOT);
    return definitions()
            .map(definition -> definition.configKeys().get(bare))
            .anyMatch(key -> key != null && key.type == ConfigDef.Type.PASSWORD)
        || SECRET_WORDS.stream().anyMatch(bare::contains);
  }

  private static Stream<ConfigDef> definitions() {
    return Stream.of(
        StreamsConfig.configDef(),
        ConsumerConfig.configDef(),
        ProducerConfig.configDef(),
        AdminClientConfig.configDef());
  }

  /** As many lines as the longest cell needs. */
  private void row(PrintWriter out, Object... cells) {
    String[] left =
        Arrays.stream(cells).map(Settings::text).map(file::masked).toArray(String[]::new);
    do {
      StringBuilder line = new StringBuilder();
      for (int i = 0; i < left.length; i++) {
        int width = Math.min(WIDTHS[i], left[i].length());
        line.append(left[i], 0, width).append(" ".repeat(WIDTHS[i] - width + 1));
        left[i] = left[i].substring(width);
      }
      out.println(line.toString().stripTrailing());
    } while (Stream.of(left).anyMatch(cell -> !cell.isEmpty()));
  }

  private static String text(Object cell) {
    if (cell == null) {
      return "none";
    }
    if (cell instanceof Class<?> type) {
      return type.getName();
    }
    return cell instanceof List<?> list
        ? String.join(",", list.stream().map(Object::toString).toList())
        : cell.toString().replaceAll("\\s+", " ");
  }
}
