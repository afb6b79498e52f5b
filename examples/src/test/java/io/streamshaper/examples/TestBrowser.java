package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import com.microsoft.playwright.Browser;
import com.microsoft.playwright.BrowserType;
import com.microsoft.playwright.Page;
import com.microsoft.playwright.Playwright;
import com.microsoft.playwright.options.ColorScheme;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The browser of the tests: a Chromium of this machine, without a window. {@code
 * -Dshaper.browser=PATH} says which; without it, the first that is found, and where there is none
 * the test is skipped.
 */
final class TestBrowser implements AutoCloseable {
  private static final String SETTING = System.getProperty("shaper.browser", "auto");
  private static final int HEIGHT = 900;

  private final Playwright playwright;
  private final Browser browser;

  private TestBrowser(Path executable) {
    playwright =
        Playwright.create(
            new Playwright.CreateOptions().setEnv(Map.of("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")));
    browser =
        playwright.chromium().launch(new BrowserType.LaunchOptions().setExecutablePath(executable));
  }

  static TestBrowser launch() {
    return new TestBrowser(executable());
  }

  /**
   * A page in a window of its own; close its context.
   *
   * @param complaints gets what the page says on its console, and whom else it asks
   */
  Page open(String url, int width, ColorScheme scheme, List<String> complaints) {
    Page page =
        browser
            .newContext(
                new Browser.NewContextOptions()
                    .setViewportSize(width, HEIGHT)
                    .setColorScheme(scheme))
            .newPage();
    page.onConsoleMessage(message -> complaints.add(message.text()));
    page.onPageError(complaints::add);
    page.onRequest(
        request -> {
          if (!request.url().startsWith(url)) {
            complaints.add("asked for " + request.url());
          }
        });
    page.navigate(url);
    return page;
  }

  @Override
  public void close() {
    playwright.close();
  }

  private static Path executable() {
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
        () -> abort("no Chromium on the PATH, and -Dshaper.browser=PATH names none"));
  }

  private static Stream<Path> onPath(String name) {
    return Pattern.compile(File.pathSeparator, Pattern.LITERAL)
        .splitAsStream(System.getenv().getOrDefault("PATH", ""))
        .map(folder -> Path.of(folder, name))
        .filter(Files::isExecutable);
  }
}
