package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What the README says, as far as it can be checked. */
class ReadmeTest {
  /** Tests run in their module's folder. */
  private static final Path README = Path.of("..", "README.md");

  @Test
  void everyOptionIsInTheTableWithItsDefault() throws IOException {
    List<String> rows = rows();
    ShaperOptions.configDef()
        .configKeys()
        .forEach(
            (name, key) -> {
              String row =
                  rows.stream().filter(r -> r.startsWith("| `" + name + "` ")).findAny().orElse("");
              assertThat(row).as(name).isNotEmpty();
              if (key.hasDefault() && key.defaultValue != null && isLiteral(name)) {
                assertThat(row).as(name).contains("| " + key.defaultValue + " |");
              }
            });
  }

  @Test
  void itIsShortEnoughToBeRead() throws IOException {
    assertThat(Files.readAllLines(README)).hasSizeLessThanOrEqualTo(150);
  }

  private static List<String> rows() throws IOException {
    try (Stream<String> lines = Files.lines(README)) {
      return lines.filter(line -> line.startsWith("|")).toList();
    }
  }

  /** Written in the README as people say it. */
  private static boolean isLiteral(String name) {
    return !List.of(ShaperOptions.MAX_BYTES, ShaperOptions.PLAUSIBLE_AGE_MS).contains(name);
  }
}
