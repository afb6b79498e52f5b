package io.streamshaper.examples;

import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

@Command(name = "overload")
final class OverloadCommand implements Callable<Integer> {
  @Override
  public Integer call() {
    return 0;
  }
}
