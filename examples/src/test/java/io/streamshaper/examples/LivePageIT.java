package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.deque.html.axecore.playwright.AxeBuilder;
import com.deque.html.axecore.results.Rule;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.microsoft.playwright.Page;
import com.microsoft.playwright.Route;
import com.microsoft.playwright.options.ColorScheme;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The page of {@code demo --live}, in a browser. Takes its pictures to {@code target}. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class LivePageIT {
  private static final int WIDE = 1280;

  private static final HttpClient HTTP = HttpClient.newHttpClient();

  private static final StringWriter out = new StringWriter();
  private static TestBroker broker;
  private static Thread demo;
  private static String url;
  private static TestBrowser browser;

  private final List<String> complaints = new ArrayList<>();
  private Page page;

  @BeforeAll
  static void startDemoAndBrowser() throws Exception {
    browser = TestBrowser.launch();
    broker = TestBroker.start();
    demo =
        new Thread(
            () ->
                Main.commandLine()
                    .setOut(new PrintWriter(out, true))
                    .execute("demo", "--live", "--bootstrap-server", broker.bootstrapServers()));
    demo.start();
    Pattern address = Pattern.compile("http://127\\.0\\.0\\.1:\\d+/");
    Patience.await("the demo says where", () -> address.matcher(out.toString()).find());
    Matcher matcher = address.matcher(out.toString());
    assertThat(matcher.find()).isTrue();
    url = matcher.group();
  }

  @AfterAll
  static void stopAllAndFindNothingLeft() throws Exception {
    if (browser != null) {
      browser.close();
    }
    if (demo != null) {
      demo.interrupt();
      demo.join();
      try (Admin admin =
          Admin.create(
              Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()))) {
        assertThat(admin.listTopics().names().get()).isEmpty();
        assertThat(admin.listGroups().all().get()).isEmpty();
      }
    }
    if (broker != null) {
      broker.close();
    }
  }

  @BeforeEach
  void openPage() {
    open(WIDE, ColorScheme.LIGHT);
  }

  @AfterEach
  void closePageThatNeverComplained() {
    page.context().close();
    assertThat(complaints).isEmpty();
  }

  @Test
  @Order(1)
  void chartsMoveAndFiguresSayTheSame() throws Exception {
    Patience.await(
        "the quiet keys are safe", () -> quietDelayMs() < 1000 && droppedPerSecond() > 0);
    Map<String, String> before = charts();
    int pointsBefore = points("delay");
    Patience.await("points come", () -> points("delay") > pointsBefore);
    assertThat(points("rates")).isGreaterThan(pointsBefore);
    Map<String, String> after = charts();
    assertThat(after.get("delay")).isNotEqualTo(before.get("delay"));
    assertThat(after.get("rates")).isNotEqualTo(before.get("rates"));

    assertThat(page.textContent("#summary")).startsWith("With the shaper: quiet keys wait ");
    assertThat(page.textContent("#spoken")).startsWith("With the shaper");
    assertThat(page.locator("#flows tr").first().textContent()).startsWith("hot");
    assertThat(page.textContent("#settings")).contains("shaper.rate1,000/s");
    assertThat(page.isVisible("#figures-body")).isFalse();
    page.click("#figures summary");
    page.waitForSelector("#figures-body tr");
    assertThat(page.textContent("#figures-head")).contains("quiet keys p99", "ceiling/s");
  }

  @Test
  @Order(2)
  void theHotKeyIsSwitchedFromTheKeyboard() throws Exception {
    press("hot");
    assertThat(page.getAttribute("#hot", "aria-pressed")).isEqualTo("false");
    Patience.await("only quiet keys send", () -> perSecond("in") < 1000);
    Patience.await("nothing is dropped", () -> droppedPerSecond() == 0);
    assertThat(page.getAttribute("#hot", "aria-pressed")).isEqualTo("false");
    press("hot");
    assertThat(page.getAttribute("#hot", "aria-pressed")).isEqualTo("true");
    Patience.await("the hot key sends", () -> perSecond("in") > 1000);
  }

  @Test
  @Order(3)
  void withoutTheShaperQuietKeysWaitAndWithItTheyAreSafeAgain() throws Exception {
    press("shaper");
    assertThat(page.getAttribute("#shaper", "aria-pressed")).isEqualTo("false");
    Patience.await("quiet keys wait for seconds", () -> quietDelayMs() > 5000);
    assertThat(page.getAttribute("#shaper", "aria-pressed")).isEqualTo("false");
    assertThat(page.textContent("#summary")).startsWith("Without the shaper: quiet keys wait ");
    assertThat(page.textContent("#flows")).startsWith("all keys");
    picture("live-page-without.png");
    press("shaper");
    Patience.await("quiet keys are safe", () -> quietDelayMs() < 1000 && droppedPerSecond() > 1000);
    assertThat(page.textContent("#summary")).startsWith("With the shaper: quiet keys wait ");
    picture("live-page.png");
  }

  @ParameterizedTest
  @Order(4)
  @CsvSource({"1280,LIGHT", "1280,DARK", "400,LIGHT", "400,DARK"})
  void fitsAnyWidthAndSchemeAndEveryReader(int width, ColorScheme scheme) throws Exception {
    page.context().close();
    open(width, scheme);
    Patience.await("figures are there", () -> points("delay") > 2);
    page.click("#figures summary");
    assertThat((int) page.evaluate("document.documentElement.scrollWidth")).isEqualTo(width);
    assertThat(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        .isEqualTo(scheme == ColorScheme.DARK ? "rgb(14, 19, 25)" : "rgb(244, 246, 249)");
    assertThat(new AxeBuilder(page).analyze().getViolations())
        .extracting(Rule::getId, Rule::getNodes)
        .isEmpty();
    picture("live-page-" + width + "-" + scheme.name().toLowerCase(Locale.ROOT) + ".png");
  }

  @Test
  void aTabThatWasOpenBeforeARestartBeginsAnew() throws Exception {
    page.route(
        "**/page/data?after=0",
        route ->
            route.fulfill(
                new Route.FulfillOptions()
                    .setBody(
                        "{\"page\": 1, \"taken\": 999999, \"now\": null, \"settings\": [],"
                            + " \"points\": []}")),
        new Page.RouteOptions().setTimes(1));
    page.reload();
    Patience.await("figures are there", () -> points("delay") > 2);
    assertThat(page.textContent("#settings")).contains("shaper.rate");
  }

  @Test
  void refusesWhatItCannotRead() throws Exception {
    assertThat(get("page/data?before=1").statusCode()).isEqualTo(400);
    assertThat(get("page/data?after=-1").statusCode()).isEqualTo(400);
    assertThat(get("page/data?after=nonsense").body())
        .isEqualTo("the query must be after=NUMBER, was after=nonsense");
    HttpResponse<String> flip =
        send(
            HttpRequest.newBuilder(URI.create(url + "page/switches/hot"))
                .PUT(HttpRequest.BodyPublishers.ofString("maybe")));
    assertThat(flip.statusCode()).isEqualTo(400);
    assertThat(flip.body()).isEqualTo("a switch must be true or false");
  }

  @Test
  void letsABrowserLoadNothingFromElsewhere() throws Exception {
    assertThat(get("").headers().firstValue("Content-Security-Policy"))
        .hasValueSatisfying(policy -> assertThat(policy).startsWith("default-src 'self';"));
  }

  private void open(int width, ColorScheme scheme) {
    page = browser.open(url, width, scheme, complaints);
  }

  private void press(String button) {
    page.locator("#" + button).waitFor();
    page.focus("#" + button);
    page.keyboard().press("Space");
  }

  private int points(String chart) {
    page.waitForSelector("#" + chart + "[data-points]");
    return Integer.parseInt(page.getAttribute("#" + chart, "data-points"));
  }

  /** What is drawn. */
  private Map<String, String> charts() {
    return Map.of("delay", drawn("delay"), "rates", drawn("rates"));
  }

  private String drawn(String chart) {
    page.waitForSelector("#" + chart + " canvas");
    return (String)
        page.evaluate("id => document.querySelector('#' + id + ' canvas').toDataURL()", chart);
  }

  private static double quietDelayMs() throws Exception {
    return newest().at("/delays/quiet/p99").asDouble(Double.NaN);
  }

  private static double perSecond(String outcome) throws Exception {
    return newest().at("/perSecond/" + outcome).asDouble();
  }

  private static double droppedPerSecond() throws Exception {
    return perSecond("codel")
        + perSecond("ceiling")
        + perSecond("expired")
        + perSecond("overlimit");
  }

  private static JsonNode newest() throws Exception {
    JsonNode points = new ObjectMapper().readTree(get("page/data").body()).get("points");
    return points.get(points.size() - 1);
  }

  private static HttpResponse<String> get(String path) throws Exception {
    return send(HttpRequest.newBuilder(URI.create(url + path)));
  }

  private static HttpResponse<String> send(HttpRequest.Builder request) throws Exception {
    return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  private void picture(String name) {
    page.screenshot(
        new Page.ScreenshotOptions().setPath(Path.of("target", name)).setFullPage(true));
  }
}
