package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What can be seen of {@code docker/compose.yaml} without Docker. {@link WholeStack} runs it. */
class ComposeTest {
  private static final Path FILE = Path.of("..", "docker", "compose.yaml");
  private static final Pattern MOUNT = Pattern.compile("\\./([^:\\s]+):(/[^:\\s]+):ro");
  private static final Pattern PORTS = Pattern.compile("ports: *(.+)");
  private static final Pattern IMAGE = Pattern.compile("image: *(.+)");
  private static final Pattern DASHBOARDS = Pattern.compile("path: *(\\S+)");

  private String compose;

  @BeforeEach
  void read() throws IOException {
    compose = Files.readString(FILE);
  }

  /** Docker would make a folder of a file that is not there, and say nothing. */
  @Test
  void mountsFilesThatExist() {
    assertThat(find(MOUNT, compose))
        .hasSizeGreaterThan(1)
        .allSatisfy(mount -> assertThat(FILE.resolveSibling(mount.group(1))).isRegularFile());
  }

  @Test
  void mountsEveryDashboardWhereGrafanaLooks() throws IOException {
    String provider = Files.readString(Dashboard.FOLDER.resolve("dashboards.yaml"));
    String folder = find(DASHBOARDS, provider).get(0).group(1);

    assertThat(Dashboard.all())
        .isNotEmpty()
        .allSatisfy(
            dashboard ->
                assertThat(compose)
                    .contains("./grafana/%s:%s/%s:ro".formatted(dashboard, folder, dashboard)));
  }

  @Test
  void nothingListensBeyondThisMachine() {
    assertThat(find(PORTS, compose))
        .hasSizeGreaterThan(1)
        .allSatisfy(ports -> assertThat(ports.group(1)).matches("\\[\"127\\.0\\.0\\.1:[^, ]+\"]"));
  }

  @Test
  void everyImageCanBeAnother() {
    assertThat(find(IMAGE, compose))
        .hasSizeGreaterThan(1)
        .allSatisfy(image -> assertThat(image.group(1)).matches("\\$\\{\\w+_IMAGE:-\\S+}"));
  }

  private static List<MatchResult> find(Pattern pattern, String text) {
    return pattern.matcher(text).results().toList();
  }
}
