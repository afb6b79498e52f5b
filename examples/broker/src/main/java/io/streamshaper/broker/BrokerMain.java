package io.streamshaper.broker;

import java.io.IOException;
import java.nio.file.Path;
import kafka.Kafka;
import kafka.tools.StorageTool;

/**
 * The broker's JVM: formats the data folder unless it is formatted, runs the broker, and ends with
 * its parent, however that ends. Its one argument is a folder with the {@code server.properties}
 * and everything else that shall not outlive the parent.
 */
public final class BrokerMain {

  /** The same for all, so that a data folder can be used again. */
  private static final String CLUSTER_ID = "c2hhcGVyLWV4YW1wbGUtMQ";

  private BrokerMain() {}

  public static void main(String[] args) {
    Path folder = Path.of(args[0]);
    endWithParent(folder);
    String properties = folder.resolve("server.properties").toString();
    format(properties);
    Kafka.main(new String[] {properties});
  }

  private static void format(String properties) {
    String[] format = {
      "format", "--ignore-formatted", "--cluster-id", CLUSTER_ID, "--config", properties
    };
    int status = StorageTool.execute(format, System.out);
    if (status != 0) {
      System.exit(status);
    }
  }

  /**
   * The parent holds the other end of our input and writes nothing: it ends when the parent ends.
   */
  private static void endWithParent(Path folder) {
    Thread watch = new Thread(() -> haltAtEndOfInput(folder), "parent-watch");
    watch.setDaemon(true);
    watch.start();
  }

  private static void haltAtEndOfInput(Path folder) {
    try {
      while (System.in.read() >= 0) {}
      // The parent's shell deletes too, but may do so while the broker still writes.
      Leftovers.deleteAtOurEnd(folder);
    } catch (IOException e) {
      System.err.println("can't delete " + folder + ": " + e);
    } finally {
      Runtime.getRuntime().halt(1);
    }
  }
}
