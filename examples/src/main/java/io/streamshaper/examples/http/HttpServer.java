package io.streamshaper.examples.http;

import io.javalin.Javalin;
import io.javalin.compression.CompressionStrategy;
import io.javalin.config.JavalinConfig;
import io.javalin.config.RoutesConfig;
import io.javalin.util.JavalinLogger;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpMethod;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.NetworkConnectionLimit;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/**
 * HTTP for the few who watch, bounded in threads, connections and patience. What they ask for is
 * written without a thread that waits: readers as slow as they like keep nobody else from it.
 */
public final class HttpServer implements AutoCloseable {
  private static final int THREADS = 8;
  private static final int CONNECTIONS = 2048;
  private static final Duration IDLE = Duration.ofSeconds(10);

  /** Held by the system for each reader that does not read, where it would give megabytes. */
  private static final int SEND_BUFFER_BYTES = 64 * 1024;

  /** Of browsers: everything is ours. */
  private static final String POLICY =
      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

  private final Javalin javalin;

  private HttpServer(Javalin javalin) {
    this.javalin = javalin;
  }

  /** What is answered without a thread that waits; nobody changes it. */
  @SuppressWarnings("ArrayRecordComponent")
  public record Answer(int status, String contentType, byte[] body) {}

  /** Listens at once, or throws. */
  public static HttpServer start(String bind, int port, Consumer<RoutesConfig> routes) {
    return start(bind, port, Map.of(), routes);
  }

  /**
   * As above.
   *
   * @param answers to GET by path, given the query or null
   * @param routes for everything else
   */
  public static HttpServer start(
      String bind,
      int port,
      Map<String, Function<String, Answer>> answers,
      Consumer<RoutesConfig> routes) {
    Javalin javalin =
        Javalin.create(
            config -> {
              configure(config, bind, port, answers);
              routes.accept(config.routes);
            });
    JavalinLogger.enabled = false; // it throws, too
    try {
      return new HttpServer(javalin.start());
    } finally {
      JavalinLogger.enabled = true;
    }
  }

  /** Also where any was asked for. */
  public int port() {
    return javalin.port();
  }

  @Override
  public void close() {
    javalin.stop();
  }

  private static void configure(
      JavalinConfig config, String bind, int port, Map<String, Function<String, Answer>> answers) {
    config.startup.showJavalinBanner = false;
    config.startup.showOldJavalinVersionWarning = false;
    config.startup.startupWatcherEnabled = false;
    config.http.compressionStrategy = CompressionStrategy.NONE; // the stream thread needs the CPU
    config.jetty.threadPool = new QueuedThreadPool(THREADS, 1);
    config.jetty.addConnector((server, http) -> connector(server, http, bind, port));
    config.jetty.modifyServer(
        server -> {
          server.setStopTimeout(0); // else it waits for connections that are idle, and throws
          server.addBean(new NetworkConnectionLimit(CONNECTIONS, server));
          server.setHandler(new Answers(answers));
        });
  }

  private static Connector connector(Server server, HttpConfiguration http, String bind, int port) {
    http.setSendServerVersion(false);
    ServerConnector connector = new ServerConnector(server, 1, 1, new HttpConnectionFactory(http));
    connector.setHost(bind);
    connector.setPort(port);
    connector.setIdleTimeout(IDLE.toMillis());
    connector.setAcceptQueueSize(CONNECTIONS);
    connector.setAcceptedSendBufferSize(SEND_BUFFER_BYTES);
    return connector;
  }

  /** In front of the routes. */
  private static final class Answers extends Handler.Wrapper {
    private final Map<String, Function<String, Answer>> answers;

    private Answers(Map<String, Function<String, Answer>> answers) {
      this.answers = answers;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
      Function<String, Answer> answering = answers.get(Request.getPathInContext(request));
      if (answering == null || !HttpMethod.GET.is(request.getMethod())) {
        return super.handle(request, response, callback);
      }
      Answer answer = answering.apply(request.getHttpURI().getQuery());
      response.setStatus(answer.status);
      HttpFields.Mutable headers = response.getHeaders();
      headers.put(HttpHeader.CONTENT_TYPE, answer.contentType);
      headers.put(HttpHeader.CACHE_CONTROL, "no-store");
      headers.put("Content-Security-Policy", POLICY);
      headers.put("X-Content-Type-Options", "nosniff");
      headers.put("Referrer-Policy", "no-referrer");
      response.write(true, ByteBuffer.wrap(answer.body), callback);
      return true;
    }
  }
}
