package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each bench in small: status 0 says that the law held in every run. */
class BenchIT {
  private static final int TERMINAL_COLUMNS = 80;

  private static TestBroker broker;

  @TempDir private Path folder;

  @BeforeAll
  static void startBroker() throws Exception {
    broker = TestBroker.start();
  }

  @AfterAll
  static void stopBroker() {
    broker.close();
  }

  @Test
  void throughputAddsUpUnderBothGuarantees() throws Exception {
    JsonNode results =
        bench("throughput", "", "--records=10000", "--rounds=1", "--warm-up=0", "--value-bytes=64");

    assertThat(results).hasSize(2);
    for (JsonNode result : results) {
      assertThat(result.get("rounds")).hasSize(Variant.values().length);
      assertThat(result.get("targets")).hasSize(7);
      assertThat(result.at("/rounds/shaper, nothing queued/0/changelogPerThousand").doubleValue())
          .isZero();
      assertThat(result.at("/rounds/put and delete/0/changelogPerThousand").doubleValue())
          .isEqualTo(2000);
    }
  }

  @Test
  void overloadAddsUp() throws Exception {
    JsonNode results =
        bench("overload", "overload", "--seconds=2", "--load=5", "--quiet-keys=10", "--tasks=1,2");

    assertThat(results).hasSize(OverloadCommand.Mode.values().length);
    for (JsonNode result : results) {
      assertThat(result.get("rows")).hasSize(4);
    }
  }

  @Test
  void outageAddsUp() throws Exception {
    JsonNode results =
        bench(
            "outage",
            "outage",
            "--down-seconds=60",
            "--max-age-seconds=20",
            "--step-micros=10",
            "--rounds=1",
            "--timeout-seconds=60");

    assertThat(results.get("backlog").longValue()).isEqualTo(60 * 500);
    assertThat(results.get("starts")).hasSize(Outage.Remedy.values().length);
    for (JsonNode starts : results.get("starts")) {
      assertThat(starts.get(0).get("everyKeySeconds").doubleValue()).isPositive();
    }
  }

  /** Returns the results as a machine finds them. */
  private JsonNode bench(String name, String command, String... options) throws Exception {
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    Path json = folder.resolve("results.json");
    var line = new java.util.ArrayList<>(java.util.List.of("bench"));
    if (!command.isEmpty()) {
      line.add(command);
    }
    line.addAll(java.util.List.of(options));
    line.add("--bootstrap-server=" + broker.bootstrapServers());
    line.add("--json=" + json);

    int status =
        Main.commandLine()
            .setOut(new PrintWriter(out, true))
            .setErr(new PrintWriter(err, true))
            .execute(line.toArray(new String[0]));

    assertThat(status).as(err.toString()).isZero();
    assertThat(out.toString().lines())
        .isNotEmpty()
        .allSatisfy(text -> assertThat(text).hasSizeLessThanOrEqualTo(TERMINAL_COLUMNS));
    assertNothingIsLeft();
    JsonNode all = new ObjectMapper().readTree(json.toFile());
    assertThat(all.get("bench").textValue()).isEqualTo(name);
    assertThat(all.at("/machine/java").textValue()).isNotBlank();
    return all.get("results");
  }

  private static void assertNothingIsLeft() throws Exception {
    try (Admin admin =
        Admin.create(
            Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()))) {
      assertThat(admin.listTopics().names().get()).isEmpty();
      assertThat(admin.listGroups().all().get()).isEmpty();
    }
  }
}
