package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What is left of the stack in {@code docker} after a while under load, its load and application
 * stopped. Only {@code .ci/stack} runs this, by its name, and says where to look.
 */
class WholeStack {
  private static final String BROKER = setting("broker");
  private static final String PROMETHEUS = setting("prometheus");

  /** In seconds since 1970: when records were moving, and when none were any more. */
  private static final String BUSY = setting("busy");

  private static final String IDLE = setting("idle");

  private static final String APPLICATION = "orders-shaper";
  private static final String RATE_INTERVAL = "20s";

  private static String setting(String name) {
    String property = "shaper.stack." + name;
    return Objects.requireNonNull(System.getProperty(property), property + " must be set");
  }

  static List<String> expressions() {
    return Dashboard.all().stream()
        .flatMap(dashboard -> dashboard.expressions().stream())
        .distinct()
        .toList();
  }

  @ParameterizedTest
  @MethodSource("expressions")
  void everyPanelShowsNumbers(String expression) throws Exception {
    assertThat(query(expression, BUSY))
        .isNotEmpty()
        .allSatisfy(series -> assertThat(value(series)).isFinite());
  }

  @Test
  void everyMeterOfTheShaperIsInSomePanel() throws Exception {
    assertThat(
            query(
                "count by (__name__) ({__name__=~\"shaper_.+\", __name__!~\".+_(sum|count)\"})",
                BUSY))
        .isNotEmpty()
        .extracting(series -> series.at("/metric/__name__").asText())
        .allSatisfy(
            name -> assertThat(expressions()).anyMatch(expression -> expression.contains(name)));
  }

  @Test
  void theMetersAddUpWhenNothingMoves() throws Exception {
    List<String> unaccounted =
        expressions().stream().filter(promQl -> promQl.startsWith("min_over_time(abs(")).toList();
    assertThat(unaccounted).hasSize(1);
    assertThat(query(unaccounted.get(0), IDLE))
        .singleElement()
        .satisfies(series -> assertThat(value(series)).isZero());
  }

  @Test
  void quietKeysAreUnharmedAndNothingIsLostByAStop() throws Exception {
    try (Admin admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, BROKER))) {
      Ledger ledger =
          Ledger.read(
              admin,
              BROKER,
              APPLICATION,
              "orders",
              "orders-shaped",
              "orders-dropped",
              APPLICATION + "-shaper-queue-changelog");

      assertThat(ledger.violations()).isEmpty();
      Ledger.Account hot = ledger.total(Load::isHot);
      Ledger.Account quiet = ledger.total(key -> !Load.isHot(key));
      System.out.println("hot: " + hot + System.lineSeparator() + "quiet: " + quiet);
      assertThat(hot.forwarded()).isPositive();
      assertThat(hot.dropped()).isGreaterThan(hot.forwarded());
      assertThat(quiet.forwarded()).isPositive();
      assertThat(quiet.dropped()).isZero();
    }
  }

  /** As Grafana would ask, with everything chosen in its lists. */
  private static List<JsonNode> query(String expression, String time)
      throws IOException, InterruptedException {
    String promQl =
        expression.replace("$__rate_interval", RATE_INTERVAL).replaceAll("\\$(shaper|task)", ".*");
    URI uri =
        URI.create(
            "%s/api/v1/query?time=%s&query=%s"
                .formatted(PROMETHEUS, time, URLEncoder.encode(promQl, StandardCharsets.UTF_8)));
    HttpResponse<String> response =
        HttpClient.newHttpClient()
            .send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
    assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
    return Dashboard.list(new ObjectMapper().readTree(response.body()).at("/data/result"));
  }

  private static double value(JsonNode series) {
    return Double.parseDouble(series.at("/value/1").asText());
  }
}
