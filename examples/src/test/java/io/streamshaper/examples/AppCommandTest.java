package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/** What the app refuses without a broker: exit status 2, one line, nothing started. */
@ResourceLock(Resources.SYSTEM_ERR)
class AppCommandTest {
  @TempDir private Path folder;

  private final List<String> lines =
      new ArrayList<>(
          List.of(
              "bootstrap.servers=localhost:1",
              "application.id=app",
              "input.topic=in",
              "output.topic=out",
              "dropped.topic=dropped"));
  private final StringWriter out = new StringWriter();
  private String err;

  @Test
  void anUnknownOptionOfTheShaperComesWithTheNearestKnownOne() throws Exception {
    lines.add("shaper.tagret.ms=5");
    refuses("unknown shaper.tagret.ms, did you mean shaper.target.ms?");
  }

  @Test
  void anUnknownOptionOfTheAppComesWithTheNearestKnownOne() throws Exception {
    lines.add("app.prot=8081");
    refuses("unknown app.prot, did you mean app.port?");
  }

  @Test
  void anUnknownOptionThatIsLikeNoOtherIsRefusedAllTheSame() throws Exception {
    lines.add("shaper.something.else.altogether=5");
    refuses("unknown shaper.something.else.altogether (");
  }

  @Test
  void aTopicSettingMisspeltComesWithTheNearestKnownOne() throws Exception {
    lines.add("input.topics=other");
    refuses("unknown input.topics, did you mean input.topic?");
  }

  @Test
  void aNameThatIsNearlyOneOfKafkasIsASlip() throws Exception {
    lines.add("procesing.guarantee=exactly_once_v2");
    refuses("unknown procesing.guarantee, did you mean processing.guarantee?");
  }

  @Test
  void aClientsNameMisspeltBehindItsPrefixIsASlip() throws Exception {
    lines.add("consumer.max.pol.records=5");
    refuses("unknown consumer.max.pol.records, did you mean max.poll.records?");
  }

  @Test
  void aMissingFileIsNamed() throws Exception {
    refuses(folder.resolve("none.properties"), "none.properties: the file must exist");
  }

  @Test
  void aFolderIsNoFile() throws Exception {
    refuses(folder, "the file must be readable, was not");
  }

  @Test
  void aKeyThatIsThereTwiceIsNamed() throws Exception {
    lines.add("shaper.rate=1");
    lines.add("shaper.rate=2");
    refuses("shaper.rate must be in the file once, was there again");
  }

  @Test
  void latin1IsNotUtf8() throws Exception {
    lines.add("#Gr\u00fc\u00dfe");
    refuses(write(String.join("\n", lines).getBytes(StandardCharsets.ISO_8859_1)), "in UTF-8");
  }

  @Test
  void utf16IsNotUtf8() throws Exception {
    refuses(write(String.join("\n", lines).getBytes(StandardCharsets.UTF_16)), "in UTF-8");
  }

  @Test
  void utf16WithoutAMarkIsNotUtf8() throws Exception {
    refuses(write(String.join("\n", lines).getBytes(StandardCharsets.UTF_16LE)), "in UTF-8");
  }

  @Test
  void aBrokenEscapeIsNamed() throws Exception {
    lines.add("client.id=\\u12");
    refuses("a \\u in the file must have four hexadecimal digits behind it");
  }

  @Test
  void anEmptyFileNamesWhatMustBeThere() throws Exception {
    lines.clear();
    refuses("Missing required configuration", "topic");
  }

  @Test
  void noApplicationIdIsRefused() throws Exception {
    lines.removeIf(line -> line.startsWith("application.id"));
    refuses("Missing required configuration \"application.id\"");
  }

  @Test
  void noDroppedTopicIsRefusedSinceItMustBeSaidThatDropsAreGone() throws Exception {
    lines.removeIf(line -> line.startsWith("dropped.topic"));
    refuses("Missing required configuration \"dropped.topic\"");
  }

  @Test
  void aRateOutOfRangeIsRefused() throws Exception {
    lines.add("shaper.rate=-1");
    refuses("shaper.rate must be above 0 and below 1e15, was -1.0");
  }

  @Test
  void aRateThatIsNoNumberIsRefused() throws Exception {
    lines.add("shaper.rate=fast");
    refuses("Invalid value fast for configuration shaper.rate");
  }

  @Test
  void optionsThatContradictEachOtherAreRefused() throws Exception {
    lines.add("shaper.target.ms=200");
    lines.add("shaper.interval.ms=100");
    refuses("interval must exceed target PT0.2S, was PT0.1S");
  }

  @Test
  void aPortOutOfRangeIsRefused() throws Exception {
    lines.add("app.port=65536");
    refuses("app.port must be between 0 and 65535, was 65536");
  }

  @Test
  void aFlowThatIsNoRuleIsRefused() throws Exception {
    lines.add("app.flow=value");
    refuses("app.flow must be key, header:NAME or json:/POINTER, was value");
  }

  @Test
  void aPointerWithoutItsSlashIsRefused() throws Exception {
    lines.add("app.flow=json:a");
    refuses("app.flow must be key, header:NAME or json:/POINTER, was json:a");
  }

  @Test
  void aHeaderWithoutANameIsRefused() throws Exception {
    lines.add("app.flow=header:");
    refuses("app.flow must be key, header:NAME or json:/POINTER, was header:");
  }

  @Test
  void anOutputTopicThatIsAnInputTopicIsRefused() throws Exception {
    lines.set(2, "input.topic=a, out");
    refuses("output.topic must not be an input topic, was out");
  }

  @Test
  void aDroppedTopicThatIsAnInputTopicIsRefused() throws Exception {
    lines.set(2, "input.topic=dropped");
    refuses("dropped.topic must not be an input topic, was dropped");
  }

  @Test
  void oneTopicForWhatIsForwardedAndDroppedIsRefused() throws Exception {
    lines.set(4, "dropped.topic=out");
    refuses("dropped.topic must differ from output.topic, was out");
  }

  @Test
  void anInputTopicNamedTwiceIsRefused() throws Exception {
    lines.set(2, "input.topic=in,in");
    refuses("input.topic must name topics, each once, was 'in,in'");
  }

  @Test
  void noInputTopicIsRefused() throws Exception {
    lines.set(2, "input.topic=");
    refuses("input.topic must name topics, each once, was ''");
  }

  @Test
  void anInputTopicWithoutANameIsRefused() throws Exception {
    lines.set(2, "input.topic=in,,other");
    refuses("input.topic must name topics, each once, was 'in,,other'");
  }

  @Test
  void aValueThatKafkaStreamsRefusesIsRefused() throws Exception {
    lines.add("processing.guarantee=maybe");
    refuses("Invalid value maybe for configuration processing.guarantee");
  }

  @Test
  void aValueThatTheConsumerRefusesIsRefused() throws Exception {
    lines.add("consumer.max.poll.records=-4");
    refuses("Invalid value -4 for configuration max.poll.records");
  }

  @Test
  void aValueThatTheProducerRefusesIsRefused() throws Exception {
    lines.add("linger.ms=long");
    refuses("Invalid value long for configuration linger.ms");
  }

  @Test
  void noStreamThreadIsRefused() throws Exception {
    lines.add("num.stream.threads=0");
    refuses("num.stream.threads must be at least 1, was 0");
  }

  @Test
  void aMissingEnvironmentVariableIsNamed() throws Exception {
    lines.add("shaper.rate=${env:SHAPER_TEST_THAT_NOBODY_SETS}");
    refuses("shaper.rate must refer to what is there, was ${env:SHAPER_TEST_THAT_NOBODY_SETS}");
  }

  @Test
  void aMissingSecretsFileIsNamed() throws Exception {
    lines.add("ssl.key.password=${file:/nonexistent:password}");
    refuses("Could not read properties from file /nonexistent");
  }

  @Test
  void aSecretInTheWrongPlaceIsNotShown() throws Exception {
    lines.add("shaper.rate=${file:" + secret("hunter2") + ":key}");
    refuses("Invalid value ******** for configuration shaper.rate");
    assertThat(err).doesNotContain("hunter2");
  }

  @Test
  void aBrokerWhoseNameIsUnknownIsOneLine() throws Exception {
    lines.set(0, "bootstrap.servers=broker.invalid:9092");
    refuses("No resolvable bootstrap urls given in bootstrap.servers");
  }

  @Test
  void aBrokerThatDoesNotAnswerIsOneLineAfterABoundedWait() throws Exception {
    refuses("no broker answers within 10 s at localhost:1");
  }

  @Test
  void aFileOfSecretsThatIsWrongForSaslIsOneLine() throws Exception {
    lines.add("security.protocol=SASL_SSL");
    lines.add("sasl.mechanism=PLAIN");
    lines.add("sasl.jaas.config=${file:" + secret("hunter2") + ":key}");
    refuses("JAAS");
    assertThat(err).doesNotContain("hunter2");
  }

  @Test
  void aCheckShowsNoSettingsBesideWhatIsWrongWithThem() throws Exception {
    Path file = write(String.join("\n", lines).getBytes(StandardCharsets.UTF_8));
    assertThat(run("--config", file.toString(), "--check")).isEqualTo(2);
    assertThat(err).hasLineCount(1).contains("no broker answers within 10 s");
    assertThat(out.toString()).isEmpty();
  }

  @Test
  void noFileIsBadInput() {
    assertThat(run()).isEqualTo(2);
    assertThat(err).hasLineCount(1).contains("--config=FILE");
  }

  private void refuses(String... parts) throws IOException {
    refuses(write(String.join("\n", lines).getBytes(StandardCharsets.UTF_8)), parts);
  }

  private void refuses(Path file, String... parts) {
    assertThat(run("--config", file.toString())).isEqualTo(2);
    assertThat(err).hasLineCount(1).contains(parts).doesNotContain("Exception");
    assertThat(out.toString()).isEmpty();
  }

  private Path write(byte[] bytes) throws IOException {
    return Files.write(folder.resolve("app.properties"), bytes);
  }

  private Path secret(String secret) throws IOException {
    return Files.writeString(folder.resolve("secrets"), "key=" + secret);
  }

  /** What libraries log is on standard error, too. */
  private int run(String... args) {
    PrintStream before = System.err;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream stream = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    System.setErr(stream);
    try {
      List<String> words = new ArrayList<>(List.of("app"));
      words.addAll(List.of(args));
      return Main.commandLine()
          .setOut(new PrintWriter(out, true))
          .setErr(new PrintWriter(stream, true, StandardCharsets.UTF_8))
          .execute(words.toArray(String[]::new));
    } finally {
      System.setErr(before);
      err = bytes.toString(StandardCharsets.UTF_8);
    }
  }
}
