package io.streamshaper.examples.app;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.config.ConfigException;

/**
 * Whether a broker wants TLS. Kafka's clients, when they have none, take its alert for the size of
 * an answer, and ask for 352 MB to hold it.
 */
final class TlsProbe {
  private static final Duration PATIENCE = Duration.ofSeconds(2);
  private static final Pattern ADDRESS = Pattern.compile("(?:.*://)?\\[?(.+?)]?:(\\d{1,5})");

  /** ApiVersions in version 0, from a client without a name: a broker without TLS answers it. */
  private static final byte[] REQUEST = HexFormat.of().parseHex("0000000a0012000000000000ffff");

  private static final int ALERT = 0x15;

  private TlsProbe() {}

  /**
   * Asks each broker of a client without TLS.
   *
   * @throws ConfigException if one wants it
   */
  static void refuse(AdminClientConfig config) {
    String protocol = config.getString(CommonClientConfigs.SECURITY_PROTOCOL_CONFIG);
    if (protocol.endsWith("SSL")) {
      return;
    }
    for (String server : config.getList(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG)) {
      if (wantsTls(server)) {
        throw new ConfigException(
            "%s must be SSL or SASL_SSL, which the broker at %s wants, was %s"
                .formatted(CommonClientConfigs.SECURITY_PROTOCOL_CONFIG, server, protocol));
      }
    }
  }

  private static boolean wantsTls(String server) {
    Matcher address = ADDRESS.matcher(server);
    int patienceMs = (int) PATIENCE.toMillis();
    try (Socket socket = new Socket()) {
      if (!address.matches()) {
        return false;
      }
      socket.connect(
          new InetSocketAddress(address.group(1), Integer.parseInt(address.group(2))), patienceMs);
      socket.setSoTimeout(patienceMs);
      socket.getOutputStream().write(REQUEST);
      return socket.getInputStream().read() == ALERT;
    } catch (IOException e) {
      return false; // the client will say what it is
    }
  }
}
