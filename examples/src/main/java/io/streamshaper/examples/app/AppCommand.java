package io.streamshaper.examples.app;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Runs a shaper between topics, from a properties file alone. */
@Command(
    name = "app",
    description = {
      "Run a shaper between topics, until SIGTERM.",
      "Exit status 2, and nothing started, if file, broker or topics are not as they must be."
    },
    mixinStandardHelpOptions = true)
public final class AppCommand implements Callable<Integer> {
  private static final String LOG_LEVEL = "org.slf4j.simpleLogger.log.io.streamshaper";

  /** As Java puts it before what a cause says. */
  private static final Pattern CLASS_NAME =
      Pattern.compile("\\b([a-z]\\w*\\.)+[A-Z]\\w*(Exception|Error): ");

  @Spec private CommandSpec spec;

  @Option(
      names = "--config",
      paramLabel = "FILE",
      required = true,
      description = "Properties: topics, app.*, shaper.*, and what Kafka Streams takes.")
  private Path path;

  @Option(
      names = "--check",
      description = "Check file, broker and topics, print all settings, and start nothing.")
  private boolean check;

  @Override
  public Integer call() throws Exception {
    System.getProperties().putIfAbsent(LOG_LEVEL, "info"); // before the first logger is made
    ConfigFile file =
        orRefuse(() -> ConfigFile.read(path, System.getenv()), UnaryOperator.identity());
    AppConfig config = orRefuse(() -> AppConfig.of(file), file::masked);
    int topics = orRefuse(() -> Topics.check(config), file::masked);
    if (check) {
      PrintWriter out = spec.commandLine().getOut();
      new Settings(config, file).print(out);
      out.printf("%s: good, and all %d topics are there%n", path, topics);
      return 0;
    }
    return run(orRefuse(() -> AppRun.start(config), file::masked));
  }

  private static int run(AppRun app) throws InterruptedException {
    Runtime.getRuntime().addShutdownHook(new Thread(app::close, "app-stop"));
    try (app) {
      app.awaitEnd();
    }
    return 1; // nobody asked it to end: on SIGTERM the status is the signal's
  }

  private <T> T orRefuse(Callable<T> attempt, UnaryOperator<String> mask) throws Exception {
    try {
      return attempt.call();
    } catch (RuntimeException e) {
      throw new ParameterException(spec.commandLine(), path + ": " + mask.apply(reason(e)), e);
    }
  }

  /** In one line, what a failure and its causes say. */
  static String reason(Throwable failure) {
    List<String> messages = new ArrayList<>();
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      String message = cause.getMessage() == null ? cause.toString() : cause.getMessage();
      boolean repeats = cause.getCause() != null && message.equals(cause.getCause().toString());
      if (!repeats && messages.stream().noneMatch(said -> said.contains(message))) {
        messages.add(message);
      }
    }
    return CLASS_NAME.matcher(String.join(": ", messages)).replaceAll("").replaceAll("\\s+", " ");
  }
}
