package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The browser of the tests: a Chromium of this machine. {@code -Dshaper.browser=PATH} says which;
 * without it, the first that is found, and where there is none the test is skipped.
 */
final class TestBrowser {
  private static final String SETTING = System.getProperty("shaper.browser", "auto");

  private TestBrowser() {}

  static Path executable() {
    if (!SETTING.equals("auto")) {
      Path path = Path.of(SETTING);
      assertThat(path).as("shaper.browser").isExecutable();
      return path;
    }
    Optional<Path> found =
        Stream.of("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
            .flatMap(TestBrowser::onPath)
            .findFirst();
    return found.orElseGet(
        () ->
            abort(
                "no Chromium on the PATH: the live page is not tested (-Dshaper.browser=PATH says"
                    + " where one is)"));
  }

  private static Stream<Path> onPath(String name) {
    return Pattern.compile(File.pathSeparator, Pattern.LITERAL)
        .splitAsStream(System.getenv().getOrDefault("PATH", ""))
        .map(folder -> Path.of(folder, name))
        .filter(Files::isExecutable);
  }
}
