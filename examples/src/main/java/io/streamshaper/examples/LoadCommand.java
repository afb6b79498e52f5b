package io.streamshaper.examples;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Visibility;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Sends what a shaper is for: the records of one hot key and many quiet ones. */
@Command(
    name = "load",
    description = "Send records of a hot key and of quiet ones to a topic, until Ctrl-C.",
    mixinStandardHelpOptions = true,
    showDefaultValues = true)
final class LoadCommand implements Callable<Integer> {
  private static final int MAX_RATE = 1_000_000;
  private static final int MAX_KEYS = 100_000;
  private static final int REACHABLE_MS = 10_000;

  @Spec private CommandSpec spec;

  @Option(
      names = "--bootstrap-server",
      paramLabel = "HOST:PORT",
      required = true,
      description = "A broker.")
  private String bootstrapServer;

  @Option(
      names = "--topic",
      paramLabel = "TOPIC",
      required = true,
      description = "A topic that exists.")
  private String topic;

  @Option(
      names = "--hot",
      paramLabel = "RATE",
      defaultValue = "2000",
      description = "Records a second of the hot key.")
  private int hot;

  @Option(
      names = "--quiet-keys",
      paramLabel = "COUNT",
      defaultValue = "50",
      description = "Number of quiet keys.")
  private int quietKeys;

  @Option(
      names = "--quiet",
      paramLabel = "RATE",
      defaultValue = "2",
      description = "Records a second of each quiet key.")
  private int quiet;

  @Option(
      names = "--seconds",
      paramLabel = "COUNT",
      defaultValue = "" + Integer.MAX_VALUE,
      showDefaultValue = Visibility.NEVER,
      description = "End after so many seconds.")
  private int seconds;

  /** Without a hook for SIGTERM: what has not been sent then was never there. */
  @Override
  public Integer call() throws InterruptedException {
    check("--hot", hot, 0, MAX_RATE);
    check("--quiet-keys", quietKeys, 0, MAX_KEYS);
    check("--quiet", quiet, 0, MAX_RATE);
    check("--seconds", seconds, 1, Integer.MAX_VALUE);
    checkTopic();
    try (Load load = new Load(bootstrapServer, topic, hot, quietKeys, quiet)) {
      say(
          "to %s: %,d/s of key %s, %d/s of each of %,d others%n",
          topic, hot, Load.HOT, quiet, quietKeys);
      load.run(Duration.ofSeconds(seconds));
      say("%,d sent%n", load.sent());
    }
    return 0;
  }

  private void check(String option, int value, int least, int most) {
    if (value < least || value > most) {
      throw new ParameterException(
          spec.commandLine(),
          "%s must be between %d and %d, was %d".formatted(option, least, most, value));
    }
  }

  private void checkTopic() throws InterruptedException {
    try (Admin admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServer))) {
      admin
          .describeTopics(List.of(topic), new DescribeTopicsOptions().timeoutMs(REACHABLE_MS))
          .allTopicNames()
          .get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof UnknownTopicOrPartitionException
          || e.getCause() instanceof InvalidTopicException) {
        throw new ParameterException(
            spec.commandLine(), "--topic must be a topic that exists, was " + topic);
      }
      throw new IllegalStateException("no broker answers at " + bootstrapServer, e);
    } catch (KafkaException e) {
      throw new ParameterException(
          spec.commandLine(),
          "--bootstrap-server must be HOST:PORT of a broker, was " + bootstrapServer);
    }
  }

  private void say(String format, Object... args) {
    spec.commandLine().getOut().printf(format, args).flush();
  }
}
