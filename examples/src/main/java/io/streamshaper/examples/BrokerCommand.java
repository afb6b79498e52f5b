package io.streamshaper.examples;

import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** Runs a broker, for people who want to look around, and for tests of {@link Broker}. */
@Command(
    name = "broker",
    description = "Run a Kafka broker on a free port of this machine until Ctrl-C.",
    mixinStandardHelpOptions = true,
    hidden = true)
final class BrokerCommand implements Callable<Integer> {

  @Spec private CommandSpec spec;

  @Override
  public Integer call() throws Exception {
    try (Broker broker = Broker.start()) {
      spec.commandLine()
          .getOut()
          .printf(
              "broker %s process %d folder %s%n",
              broker.bootstrapServers(), broker.pid(), broker.folder());
      new CountDownLatch(1).await();
      return 0;
    }
  }
}
