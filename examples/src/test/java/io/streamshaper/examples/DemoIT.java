package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.junit.jupiter.api.Test;

class DemoIT {
  private static final int TERMINAL_COLUMNS = 80;

  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  @Test
  void showsQuietKeysUnharmedFitsATerminalAndLeavesNothingOnTheBroker() throws Exception {
    try (TestBroker broker = TestBroker.start()) {
      int status = shaper("demo", "--bootstrap-server", broker.bootstrapServers(), "--seconds=4");

      assertThat(status).as(out.toString()).isZero();
      assertThat(out.toString()).contains("Every record is accounted for");
      assertThat(out.toString().lines())
          .allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(TERMINAL_COLUMNS));
      try (Admin admin =
          Admin.create(
              Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()))) {
        assertThat(admin.listTopics().names().get()).isEmpty();
        assertThat(admin.listGroups().all().get()).isEmpty();
      }
    }
  }

  @Test
  void anUnreachableBrokerIsOneLine() {
    int status = shaper("demo", "--bootstrap-server", "localhost:1");

    assertThat(status).isEqualTo(1);
    assertThat(err.toString()).hasLineCount(1).contains("no broker answers at localhost:1");
  }

  @Test
  void anAddressThatIsNoneIsRefused() {
    int status = shaper("demo", "--bootstrap-server", "nonsense");

    assertThat(status).isEqualTo(2);
    assertThat(err.toString()).hasLineCount(1).contains("must be HOST:PORT", "was nonsense");
  }

  @Test
  void tooFewSecondsAreRefused() {
    int status = shaper("demo", "--seconds", "3");

    assertThat(status).isEqualTo(2);
    assertThat(err.toString()).hasLineCount(1).contains("must be between 4 and 3600, was 3");
  }

  @Test
  void theLivePageHasAPortAndNoSeconds() {
    assertThat(shaper("demo", "--live", "--seconds=9")).isEqualTo(2);
    assertThat(shaper("demo", "--live", "--port=65536")).isEqualTo(2);
    assertThat(shaper("demo", "--port=8080")).isEqualTo(2);
    assertThat(err.toString().lines())
        .satisfiesExactly(
            line -> assertThat(line).contains("must come without --live, was 9"),
            line -> assertThat(line).contains("must be between 0 and 65535, was 65536"),
            line -> assertThat(line).contains("must come with --live, was 8080 without"));
  }

  @Test
  void aPortThatIsTakenIsOneLine() throws Exception {
    try (TestBroker broker = TestBroker.start();
        ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      int status =
          shaper(
              "demo",
              "--live",
              "--port=" + taken.getLocalPort(),
              "--bootstrap-server",
              broker.bootstrapServers());

      assertThat(status).isEqualTo(2);
      assertThat(err.toString())
          .hasLineCount(1)
          .contains("--port must be free, was " + taken.getLocalPort());
    }
  }

  private int shaper(String... args) {
    return Main.commandLine()
        .setOut(new PrintWriter(out, true))
        .setErr(new PrintWriter(err, true))
        .execute(args);
  }
}
