package io.streamshaper.examples;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** A dashboard of Grafana's, as it lies in {@code docker/grafana}. */
record Dashboard(Path file, JsonNode root) {
  static final Path FOLDER = Path.of("..", "docker", "grafana");

  static List<Dashboard> all() {
    try (Stream<Path> files = Files.list(FOLDER)) {
      return files.filter(file -> file.toString().endsWith(".json")).map(Dashboard::read).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Dashboard read(Path file) {
    try {
      return new Dashboard(file, new ObjectMapper().readTree(file.toFile()));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** With the rows, which are headings. */
  List<JsonNode> panels() {
    return list(root.path("panels"));
  }

  /** That show something. */
  List<JsonNode> graphs() {
    return panels().stream().filter(panel -> !panel.path("type").asText().equals("row")).toList();
  }

  /** All that is asked of Prometheus, as it is written. */
  List<String> expressions() {
    return graphs().stream()
        .flatMap(panel -> list(panel.path("targets")).stream())
        .map(target -> target.path("expr").asText())
        .toList();
  }

  static List<JsonNode> list(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false).toList();
  }

  @Override
  public String toString() {
    return file.getFileName().toString();
  }
}
