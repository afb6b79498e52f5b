package io.streamshaper.examples;

import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.common.KafkaException;
import picocli.CommandLine;
import picocli.CommandLine.ParameterException;

/** Where the user's {@code --bootstrap-server} is checked, before anything is started. */
final class BrokerAdmin {
  private static final int REACHABLE_MS = 5_000;

  private BrokerAdmin() {}

  /**
   * An admin client of a broker that answers.
   *
   * @throws ParameterException if this is no address
   * @throws IllegalStateException if no broker answers there within 5 s
   */
  static Admin of(CommandLine command, String servers) throws InterruptedException {
    Admin admin;
    try {
      admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, servers));
    } catch (KafkaException e) {
      throw new ParameterException(
          command, "--bootstrap-server must be HOST:PORT of a broker, was " + servers);
    }
    try {
      admin.describeCluster(new DescribeClusterOptions().timeoutMs(REACHABLE_MS)).nodes().get();
      return admin;
    } catch (ExecutionException e) {
      admin.close();
      throw new IllegalStateException("no broker answers at " + servers, e);
    }
  }
}
