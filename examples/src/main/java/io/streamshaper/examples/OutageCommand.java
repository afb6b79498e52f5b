package io.streamshaper.examples;

import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

@Command(name = "outage")
final class OutageCommand implements Callable<Integer> {
  @Override
  public Integer call() {
    return 0;
  }
}
