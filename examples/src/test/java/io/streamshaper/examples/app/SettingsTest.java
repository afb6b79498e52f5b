package io.streamshaper.examples.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SettingsTest {
  private static final int TERMINAL_COLUMNS = 80;
  private static final String TOPICS =
      """
      bootstrap.servers=localhost:9092
      application.id=app
      input.topic=in, other
      output.topic=out
      dropped.topic=discard
      """;

  @TempDir private Path folder;

  @Test
  void whatIsInForceFitsATerminalBesideItsDefault() throws Exception {
    assertThat(
            settings(
                    TOPICS
                        + """
                        shaper.rate=500
                        consumer.max.poll.records=7
                        my.interceptor.url=%s
                        """
                            .formatted("long".repeat(50)))
                .lines())
        .allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(TERMINAL_COLUMNS))
        .anySatisfy(line -> assertThat(line).matches("input.topic +in,other +must be set"))
        .anySatisfy(line -> assertThat(line).matches("shaper.rate +500.0 +none"))
        .anySatisfy(line -> assertThat(line).matches("shaper.target.ms +100 +100"))
        .anySatisfy(line -> assertThat(line).matches("app.bind +127.0.0.1 +127.0.0.1"))
        .anySatisfy(line -> assertThat(line).matches("app.port +8080 +8080"))
        .anySatisfy(line -> assertThat(line).matches("consumer.max.poll.records +7 +\\d+"))
        .anySatisfy(line -> assertThat(line).matches("poll.ms +5 +5"));
  }

  @Test
  void secretsAreNotShownWhereverTheyComeFrom() throws Exception {
    Path secrets = Files.writeString(folder.resolve("secrets"), "key=hunter2");
    String settings =
        settings(
            TOPICS
                + """
                sasl.jaas.config=a.module required password="hunter2";
                consumer.ssl.key.password=hunter2
                my.interceptor.token=hunter2
                client.rack=${file:%1$s:key}
                app.flow=header:${file:%1$s:key}
                producer.client.id=${env:NAME}
                """
                    .formatted(secrets));

    assertThat(settings).doesNotContain("hunter2");
    assertThat(settings.lines())
        .anySatisfy(line -> assertThat(line).matches("sasl.jaas.config +\\*{8} +none"))
        .anySatisfy(line -> assertThat(line).matches("consumer.ssl.key.password +\\*{8} +none"))
        .anySatisfy(line -> assertThat(line).matches("my.interceptor.token +\\*{8} +none"))
        .anySatisfy(line -> assertThat(line).matches("app.flow +header:\\*{8} +key"))
        .anySatisfy(
            line -> assertThat(line).startsWith("producer.client.id").contains("${env:NAME}"));
  }

  @Test
  void aSecretReachesKafkaStreams() throws Exception {
    ConfigFile file = read(TOPICS + "sasl.jaas.config=a ${env:NAME};");
    assertThat(AppConfig.of(file).streams()).containsEntry("sasl.jaas.config", "a hunter2;");
  }

  @Test
  void theExampleFileHasNothingToRefuse() {
    AppConfig config = AppConfig.of(ConfigFile.read(Path.of("app.properties"), Map.of()));
    assertThat(config.inputs()).containsExactly("orders");
    assertThat(config.output()).isEqualTo("orders-shaped");
    assertThat(config.dropped()).isEqualTo("orders-dropped");
    assertThat(config.options().rate()).isEqualTo(500);
  }

  private String settings(String text) throws IOException {
    ConfigFile file = read(text);
    StringWriter out = new StringWriter();
    new Settings(AppConfig.of(file), file).print(new PrintWriter(out));
    return out.toString();
  }

  private ConfigFile read(String text) throws IOException {
    Path path = Files.writeString(folder.resolve("app.properties"), text);
    return ConfigFile.read(path, Map.of("NAME", "hunter2"));
  }
}
