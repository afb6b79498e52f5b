package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MainTest {

  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  @ParameterizedTest
  @ValueSource(strings = {"nonsense", "--nonsense", "broker --nonsense"})
  void badInputIsOneLineAndStatus2(String line) {
    assertThat(run(line.split(" ", -1))).isEqualTo(2);
    assertThat(err.toString()).hasLineCount(1).contains("nonsense");
  }

  @Test
  void noCommandIsBadInput() {
    assertThat(run()).isEqualTo(2);
    assertThat(err.toString()).hasLineCount(1).contains("Missing required subcommand");
  }

  @Test
  void helpIsNoError() {
    assertThat(run("--help")).isZero();
    assertThat(out.toString()).startsWith("Usage: shaper");
    assertThat(err.toString()).isEmpty();
  }

  private int run(String... args) {
    return Main.commandLine()
        .setOut(new PrintWriter(out, true))
        .setErr(new PrintWriter(err, true))
        .execute(args);
  }
}
