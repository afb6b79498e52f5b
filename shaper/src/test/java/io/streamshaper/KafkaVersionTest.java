package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** So that a run of the tests on another version of Kafka is one. */
class KafkaVersionTest {

  @ParameterizedTest
  @ValueSource(strings = {"kafka-version.properties", "kafka-streams-version.properties"})
  void isTheOneThatMavenWasAskedFor(String file) throws IOException {
    Properties properties = new Properties();
    try (InputStream in = getClass().getResourceAsStream("/kafka/" + file)) {
      properties.load(in);
    }
    assertThat(properties.getProperty("version")).isEqualTo(System.getProperty("kafka.version"));
  }
}
