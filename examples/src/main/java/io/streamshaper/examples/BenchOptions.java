package io.streamshaper.examples;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.module.SimpleModule;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.streams.StreamsConfig;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What all benches have in common: a broker, a table, progress, and the same for machines. */
final class BenchOptions {
  private static final int PROGRESS_COLUMNS = 79;
  private static final List<String> GUARANTEES =
      List.of(StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2);

  private static final ObjectMapper JSON =
      new ObjectMapper()
          .enable(SerializationFeature.INDENT_OUTPUT)
          .registerModule(
              new SimpleModule()
                  .addSerializer(double.class, new NoNumberIsNull())
                  .addSerializer(Double.class, new NoNumberIsNull()));

  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--bootstrap-server",
      paramLabel = "HOST:PORT",
      description = "Use this broker; default: start one, and stop it in the end.")
  private String bootstrapServer;

  @Option(names = "--json", paramLabel = "FILE", description = "Also write the results as JSON.")
  private Path json;

  private Path stateDir;

  /** Works on a broker that answers. */
  interface Work {
    Object on(Admin admin, String servers, Path stateDir) throws Exception;
  }

  /** Finds a broker, has the work done, and writes down what it returns. */
  int run(String bench, Work work) throws Exception {
    checkJson();
    Thread cleanUp = new Thread(this::deleteStateDir, "bench-clean-up");
    stateDir = Files.createTempDirectory("shaper-bench");
    Runtime.getRuntime().addShutdownHook(cleanUp);
    try {
      Object results = bootstrapServer != null ? work(work, bootstrapServer) : ownBroker(work);
      if (json != null) {
        write(bench, results);
      }
      return 0;
    } finally {
      progress("");
      deleteStateDir();
      Runtime.getRuntime().removeShutdownHook(cleanUp);
    }
  }

  private Object ownBroker(Work work) throws Exception {
    progress("starting a broker");
    // What a run has written would stay for a minute after its topics are gone.
    try (Broker broker = Broker.start(Map.of("log.segment.delete.delay.ms", "1000"))) {
      return work(work, broker.bootstrapServers());
    }
  }

  private Object work(Work work, String servers) throws Exception {
    try (Admin admin = BrokerAdmin.of(spec.commandLine(), servers)) {
      return work.on(admin, servers, stateDir);
    }
  }

  /** Before hours of work, not after. */
  private void checkJson() {
    if (json == null) {
      return;
    }
    Path folder = json.toAbsolutePath().getParent();
    if (folder == null || !Files.isWritable(folder) || Files.isDirectory(json)) {
      throw refusal("--json", "a file in a folder that can be written to", json);
    }
  }

  private void write(String bench, Object results) throws IOException {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("bench", bench);
    all.put("at", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    all.put("machine", machine());
    all.put("results", results);
    JSON.writeValue(json.toFile(), all);
  }

  private static Map<String, Object> machine() throws IOException {
    Map<String, Object> machine = new LinkedHashMap<>();
    machine.put("processors", Runtime.getRuntime().availableProcessors());
    machine.put("maxHeapMib", Runtime.getRuntime().maxMemory() / (1024 * 1024));
    machine.put("os", System.getProperty("os.name") + " " + System.getProperty("os.version"));
    machine.put("java", System.getProperty("java.vm.version"));
    machine.put("kafka", kafkaVersion());
    return machine;
  }

  private static String kafkaVersion() throws IOException {
    try (InputStream file =
        KafkaException.class.getResourceAsStream("/kafka/kafka-version.properties")) {
      Properties properties = new Properties();
      properties.load(file);
      return properties.getProperty("version");
    }
  }

  void checkRange(String option, long value, long least, long most) {
    if (value < least || value > most) {
      throw refusal(option, "between " + least + " and " + most, value);
    }
  }

  void checkGuarantees(List<String> guarantees) {
    for (String guarantee : guarantees) {
      if (!GUARANTEES.contains(guarantee)) {
        throw refusal("--guarantee", String.join(" or ", GUARANTEES), guarantee);
      }
    }
  }

  ParameterException refusal(String option, String rule, Object was) {
    return new ParameterException(
        spec.commandLine(), "%s must be %s, was %s".formatted(option, rule, was));
  }

  void say(String format, Object... args) {
    progress("");
    PrintWriter out = spec.commandLine().getOut();
    out.printf(format + "%n", args);
    out.flush();
  }

  /** Each target and, last, how many were missed. */
  void say(List<Target> targets) {
    say("%-36s %8s %17s  %8s", "", "median", "min - max", "target");
    targets.forEach(target -> say("%s", target.line()));
    targets.stream()
        .filter(target -> !target.reached())
        .forEach(target -> say("%s", target.missed()));
  }

  /** One line, over and over, on a terminal; nothing elsewhere. */
  void progress(String format, Object... args) {
    if (Help.Ansi.AUTO.enabled()) {
      PrintWriter err = spec.commandLine().getErr();
      err.printf("\r" + " ".repeat(PROGRESS_COLUMNS) + "\r" + format, args);
      err.flush();
    }
  }

  private void deleteStateDir() {
    Application.deleteFolder(stateDir);
  }

  /** JSON has no NaN. */
  private static final class NoNumberIsNull extends JsonSerializer<Double> {
    @Override
    public void serialize(Double value, JsonGenerator json, SerializerProvider unused)
        throws IOException {
      if (Double.isFinite(value)) {
        json.writeNumber(value);
      } else {
        json.writeNull();
      }
    }
  }
}
