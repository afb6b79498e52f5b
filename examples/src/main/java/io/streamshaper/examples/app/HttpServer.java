package io.streamshaper.examples.app;

import io.javalin.Javalin;
import io.javalin.compression.CompressionStrategy;
import io.javalin.config.JavalinConfig;
import io.javalin.config.RoutesConfig;
import java.time.Duration;
import java.util.function.Consumer;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.NetworkConnectionLimit;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** HTTP for the few who watch, bounded in threads, connections and patience. */
final class HttpServer implements AutoCloseable {
  private static final int THREADS = 8;
  private static final int CONNECTIONS = 2048;
  private static final Duration IDLE = Duration.ofSeconds(10);
  private static final Duration STOP = Duration.ofSeconds(1);

  private final Javalin javalin;

  private HttpServer(Javalin javalin) {
    this.javalin = javalin;
  }

  /** Listens at once. */
  static HttpServer start(String bind, int port, Consumer<RoutesConfig> routes) {
    return new HttpServer(
        Javalin.create(
                config -> {
                  configure(config, bind, port);
                  routes.accept(config.routes);
                })
            .start());
  }

  /** Also where any was asked for. */
  int port() {
    return javalin.port();
  }

  @Override
  public void close() {
    javalin.stop();
  }

  private static void configure(JavalinConfig config, String bind, int port) {
    config.startup.showJavalinBanner = false;
    config.startup.showOldJavalinVersionWarning = false;
    config.startup.startupWatcherEnabled = false;
    config.http.compressionStrategy = CompressionStrategy.NONE; // the stream thread needs the CPU
    config.jetty.threadPool = new QueuedThreadPool(THREADS, 1);
    config.jetty.addConnector((server, http) -> connector(server, http, bind, port));
    config.jetty.modifyServer(
        server -> {
          server.setStopTimeout(STOP.toMillis());
          server.addBean(new NetworkConnectionLimit(CONNECTIONS, server));
        });
  }

  private static Connector connector(Server server, HttpConfiguration http, String bind, int port) {
    http.setSendServerVersion(false);
    ServerConnector connector = new ServerConnector(server, 1, 1, new HttpConnectionFactory(http));
    connector.setHost(bind);
    connector.setPort(port);
    connector.setIdleTimeout(IDLE.toMillis());
    return connector;
  }
}
