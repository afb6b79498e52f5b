package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * Replays recorded traffic and compares every decision, without tolerance. {@code
 * -Dshaper.traces=DIR} replays the traces of another folder.
 */
class GoldenTraceTest {
  private static final String HEADER =
      """
      {"format": 1, "events": 2, "config": {"target_ns": 5, "interval_ns": 100, "quantum": 1, \
      "limit": 9, "memory_limit": 0, "drop_batch": 1, "mtu": 0, "ceiling_ns": -1, "weights": {}, \
      "ecn": false, "ce_threshold_ns": -1}}
      """;

  @TempDir private Path folder;

  @TestFactory
  Stream<DynamicTest> everyDecisionOfTheTraceIsReproduced() throws Exception {
    String named = System.getProperty("shaper.traces");
    if (named != null) {
      return tests(Path.of(named));
    }
    FileSystem zip = bundled();
    return tests(zip.getPath("/")).onClose(() -> close(zip));
  }

  @Test
  void aFolderWithoutTracesFails() {
    assertThatThrownBy(() -> Trace.in(folder)).hasMessageContaining("traces in " + folder);
  }

  @Test
  void eventsWithoutExpectedDecisionsFail() throws IOException {
    Files.writeString(folder.resolve("half.events.csv"), HEADER + "D,1\nD,2\n");
    assertThatThrownBy(this::verify).hasMessageContaining("half: its file half.expected.csv");
  }

  @Test
  void expectedDecisionsWithoutEventsFail() throws IOException {
    Files.writeString(folder.resolve("half.expected.csv"), "0,D,-,0,0,\n");
    assertThatThrownBy(this::verify).hasMessageContaining("half: its file half.events.csv");
  }

  @Test
  void aTraceThatWasCutShortFails() throws IOException {
    write("D,1\n", "0,D,-,0,0,\n");
    assertThatThrownBy(this::verify).hasMessageContaining("cut: events");
  }

  @Test
  void aWrongDecisionIsReportedWithItsEvent() throws IOException {
    write("E,1,,-7,1,0,0,\nD,2\n", "1,D,-,0,1,\n");
    assertThatThrownBy(this::verify)
        .hasMessage("cut: line 1, event 1 (D,2): expected 1,D,-,0,1,, was 1,D,0,0,0,");
  }

  @Test
  void aMissingDecisionIsReported() throws IOException {
    write("D,1\nD,2\n", "0,D,-,0,0,\n1,D,-,0,0,\n1,D,-,0,0,\n");
    assertThatThrownBy(this::verify).hasMessageEndingWith("expected 1,D,-,0,0,, was nothing");
  }

  private void write(String events, String expected) throws IOException {
    Files.writeString(folder.resolve("cut.events.csv"), HEADER + events);
    Files.writeString(folder.resolve("cut.expected.csv"), expected);
  }

  private void verify() throws IOException {
    Trace.in(folder).get(0).verify();
  }

  private static Stream<DynamicTest> tests(Path folder) throws IOException {
    return Trace.in(folder).stream()
        .map(trace -> DynamicTest.dynamicTest(trace.name(), trace::verify));
  }

  private static FileSystem bundled() throws IOException, URISyntaxException {
    return FileSystems.newFileSystem(
        Path.of(GoldenTraceTest.class.getResource("/traces.zip").toURI()));
  }

  private static void close(FileSystem zip) {
    try {
      zip.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
