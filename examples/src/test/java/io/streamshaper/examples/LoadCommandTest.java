package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What it refuses; {@link WholeStack} sees what it sends. */
class LoadCommandTest {

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--hot=-1|--hot must be between 0 and 1000000, was -1",
        "--quiet=1000001|--quiet must be between 0 and 1000000, was 1000001",
        "--quiet-keys=-1|--quiet-keys must be between 0 and 100000, was -1",
        "--seconds=0|--seconds must be between 1 and 2147483647, was 0",
        "--seconds=1|--bootstrap-server must be HOST:PORT of a broker, was nobody"
      })
  void badOptionsAreOneLineAndStatus2(String option, String message) {
    StringWriter err = new StringWriter();

    int status =
        Main.commandLine()
            .setErr(new PrintWriter(err, true))
            .execute("load", "--bootstrap-server=nobody", "--topic=orders", option);

    assertThat(status).isEqualTo(2);
    assertThat(err.toString()).hasLineCount(1).contains(message);
  }
}
