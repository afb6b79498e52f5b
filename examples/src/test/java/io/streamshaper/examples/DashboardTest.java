package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What can be seen of the dashboards without Grafana. {@link WholeStack} asks Prometheus. */
class DashboardTest {
  private static final int GRID_COLUMNS = 24;
  private static final String DATASOURCE = "${datasource}";

  /** Of what Grafana 12.1's schema and data packages know. */
  private static final Set<String> TYPES = Set.of("row", "stat", "timeseries");

  private static final Set<String> UNITS = Set.of("short", "percentunit", "recps", "s", "bytes");
  private static final int NEWEST_SCHEMA = 41;

  private static final Pattern VARIABLE = Pattern.compile("\\$\\{?(\\w+)");

  static List<Dashboard> dashboards() {
    return Dashboard.all();
  }

  @Test
  void thereIsADashboard() {
    assertThat(dashboards()).isNotEmpty();
  }

  @ParameterizedTest
  @MethodSource("dashboards")
  void grafanaKnowsItsSchemaAndItsPanels(Dashboard dashboard) {
    assertThat(dashboard.root().path("uid").asText()).matches("[a-zA-Z0-9_-]{1,40}");
    assertThat(dashboard.root().path("title").asText()).isNotBlank();
    assertThat(dashboard.root().path("schemaVersion").asInt()).isBetween(1, NEWEST_SCHEMA);
    assertThat(dashboard.panels())
        .allSatisfy(panel -> assertThat(panel.path("type").asText()).isIn(TYPES));
  }

  @ParameterizedTest
  @MethodSource("dashboards")
  void panelsHaveIdsOfTheirOwn(Dashboard dashboard) {
    assertThat(dashboard.panels())
        .extracting(panel -> panel.path("id").asInt())
        .doesNotHaveDuplicates()
        .allMatch(id -> id > 0);
  }

  @ParameterizedTest
  @MethodSource("dashboards")
  void panelsLieSideBySideOnTheGrid(Dashboard dashboard) {
    Set<List<Integer>> taken = new HashSet<>();
    for (JsonNode panel : dashboard.panels()) {
      JsonNode grid = panel.path("gridPos");
      int left = grid.path("x").asInt(-1);
      int top = grid.path("y").asInt(-1);
      int right = left + grid.path("w").asInt();
      int bottom = top + grid.path("h").asInt();
      assertThat(left).as("left of " + panel).isNotNegative().isLessThan(right);
      assertThat(top).as("top of " + panel).isNotNegative().isLessThan(bottom);
      assertThat(right).as("right of " + panel).isLessThanOrEqualTo(GRID_COLUMNS);
      for (int x = left; x < right; x++) {
        for (int y = top; y < bottom; y++) {
          assertThat(taken.add(List.of(x, y))).as(x + ", " + y + " is free for " + panel).isTrue();
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dashboards")
  void everyPanelSaysWhatItShowsInWhichUnitFromTheChosenDatasource(Dashboard dashboard) {
    assertThat(dashboard.graphs())
        .isNotEmpty()
        .allSatisfy(
            panel -> {
              assertThat(panel.path("title").asText()).isNotBlank();
              assertThat(panel.path("description").asText()).isNotBlank();
              assertThat(panel.at("/fieldConfig/defaults/unit").asText()).isIn(UNITS);
              assertThat(panel.at("/datasource/uid").asText()).isEqualTo(DATASOURCE);
              List<JsonNode> targets = Dashboard.list(panel.path("targets"));
              assertThat(targets).isNotEmpty();
              assertThat(targets)
                  .allSatisfy(
                      target -> {
                        assertThat(target.at("/datasource/uid").asText()).isEqualTo(DATASOURCE);
                        assertThat(target.path("expr").asText()).isNotBlank();
                      });
              assertThat(targets)
                  .extracting(target -> target.path("refId").asText())
                  .doesNotHaveDuplicates()
                  .doesNotContain("");
            });
  }

  @ParameterizedTest
  @MethodSource("dashboards")
  void aVariableAsksOnlyForThoseBeforeIt(Dashboard dashboard) {
    List<String> before = new ArrayList<>();
    for (JsonNode variable : Dashboard.list(dashboard.root().at("/templating/list"))) {
      assertThat(variable.path("type").asText())
          .isEqualTo(before.isEmpty() ? "datasource" : "query");
      assertThat(variables(variable)).as("of " + variable).isSubsetOf(before);
      before.add(variable.path("name").asText());
    }
    assertThat(before).startsWith("datasource");
  }

  @ParameterizedTest
  @MethodSource("dashboards")
  void everyVariableThatIsUsedIsDefined(Dashboard dashboard) {
    List<String> defined =
        Dashboard.list(dashboard.root().at("/templating/list")).stream()
            .map(variable -> variable.path("name").asText())
            .toList();
    List<String> used = variables(dashboard.root().path("panels"));
    assertThat(used).isNotEmpty();
    assertThat(defined).containsExactlyInAnyOrderElementsOf(used);
  }

  private static List<String> variables(JsonNode json) {
    return VARIABLE
        .matcher(json.toString())
        .results()
        .map(result -> result.group(1))
        .filter(name -> !name.startsWith("__"))
        .distinct()
        .toList();
  }
}
