package io.streamshaper.examples;

import io.streamshaper.examples.app.AppCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.ParameterException;

/** The command line of the examples. Errors are one line each, never a stack trace. */
@Command(
    name = "shaper",
    description = "Examples of Shaper for Kafka Streams.",
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    subcommands = {
      DemoCommand.class,
      AppCommand.class,
      BenchCommand.class,
      BrokerCommand.class,
      LoadCommand.class
    },
    synopsisSubcommandLabel = "COMMAND")
public final class Main {

  private Main() {}

  public static void main(String[] args) {
    System.exit(commandLine().execute(args));
  }

  static CommandLine commandLine() {
    return new CommandLine(new Main())
        .setParameterExceptionHandler(Main::refuse)
        .setExecutionExceptionHandler(Main::fail);
  }

  private static int refuse(ParameterException e, String[] args) {
    CommandLine command = e.getCommandLine();
    String name = command.getCommandSpec().qualifiedName();
    command.getErr().printf("%s: %s (see %s --help)%n", name, e.getMessage(), name);
    return command.getCommandSpec().exitCodeOnInvalidInput();
  }

  private static int fail(Exception e, CommandLine command, CommandLine.ParseResult parsed) {
    String name = command.getCommandSpec().qualifiedName();
    String message = e.getMessage() == null ? e.toString() : e.getMessage();
    command.getErr().printf("%s: %s%n", name, message);
    return command.getCommandSpec().exitCodeOnExecutionException();
  }

  /** The version in the jar's manifest. */
  static final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
      String version = Main.class.getPackage().getImplementationVersion();
      return new String[] {"shaper " + (version == null ? "(not from its jar)" : version)};
    }
  }
}
