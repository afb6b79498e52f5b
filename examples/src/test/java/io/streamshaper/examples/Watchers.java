package io.streamshaper.examples;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Open pages, in a JVM of their own, so that in ours there is only what they are to a server. */
final class Watchers implements AutoCloseable {
  static final int COUNT = 1000;

  private static final String ASK = "ask";
  private static final String REST = "rest";
  private static final String DEAF = "deaf";
  private static final String ANSWERED = "answered";

  private final Process process;
  private final PrintWriter commands;
  private final BufferedReader replies;

  private Watchers(Process process) {
    this.process = process;
    commands = new PrintWriter(process.outputWriter(StandardCharsets.UTF_8), true);
    replies = process.inputReader(StandardCharsets.UTF_8);
  }

  /** They connect, and each asks once a second. */
  static Watchers of(int port) throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String classPath = System.getProperty("java.class.path");
    ProcessBuilder builder =
        new ProcessBuilder(
            java,
            "-XX:+UseSerialGC",
            "-Xmx128m",
            "-cp",
            classPath,
            Watchers.class.getName(),
            Integer.toString(port));
    return new Watchers(builder.redirectError(Redirect.INHERIT).start());
  }

  /** Whether they go on asking; they stay connected. */
  void ask(boolean on) throws IOException {
    tell(on ? ASK : REST);
  }

  /** One more, which asks and asks, and takes nothing of what it gets. */
  void addDeaf() throws IOException {
    tell(DEAF);
  }

  /** Answers that they got. */
  long answered() throws IOException {
    return tell(ANSWERED);
  }

  private long tell(String command) throws IOException {
    commands.println(command);
    String reply = replies.readLine();
    if (reply == null) {
      throw new AssertionError("the watchers were cut off: see their stack trace");
    }
    return Long.parseLong(reply);
  }

  @Override
  public void close() {
    process.destroyForcibly().onExit().join();
  }

  /** Its one argument is a port; does what its input says, and ends with it. */
  public static void main(String[] args) throws Exception {
    InetSocketAddress server =
        new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0]));
    Crowd crowd = new Crowd(server);
    Thread thread = new Thread(crowd, "watchers");
    thread.setDaemon(true);
    thread.start();
    try (var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        switch (line) {
          case ASK -> crowd.asking = true;
          case REST -> crowd.asking = false;
          case DEAF -> crowd.addDeaf();
          default -> {}
        }
        if (!thread.isAlive()) {
          return;
        }
        System.out.println(crowd.answered.get());
      }
    }
  }

  /** One thread is all of them. */
  private static final class Crowd implements Runnable {
    /** Answers to so many requests are more than the sockets' buffers take. */
    private static final int UNREAD_REQUESTS = 5000;

    private static final Pattern TAKEN = Pattern.compile("\"taken\":(\\d+)");
    private static final int BREATHERS = 100;

    private final InetSocketAddress server;
    private final List<SocketChannel> reading = new ArrayList<>();
    private final List<SocketChannel> deaf = new ArrayList<>();
    private final ByteBuffer buffer = ByteBuffer.allocate(16 * 1024);
    private String seen = "0";
    private final AtomicLong answered = new AtomicLong();
    private volatile boolean asking = true;

    Crowd(InetSocketAddress server) {
      this.server = server;
    }

    @Override
    public void run() {
      try {
        while (true) {
          for (int i = 0; i < COUNT; i++) {
            if (i == reading.size()) {
              reading.add(connect());
            }
            watch(reading.get(i));
            if (i % (COUNT / BREATHERS) == 0) {
              LockSupport.parkNanos(Duration.ofSeconds(1).toNanos() / BREATHERS);
            }
          }
        }
      } catch (IOException e) {
        throw new UncheckedIOException("a watcher was cut off", e);
      }
    }

    private void watch(SocketChannel channel) throws IOException {
      while (channel.read(buffer.clear()) > 0) {
        Matcher taken = TAKEN.matcher(StandardCharsets.US_ASCII.decode(buffer.flip()));
        while (taken.find()) {
          seen = taken.group(1);
          answered.incrementAndGet();
        }
      }
      if (asking) {
        channel.write(request(seen));
      }
    }

    void addDeaf() throws IOException {
      SocketChannel channel = connect();
      deaf.add(channel);
      for (int i = 0; i < UNREAD_REQUESTS && channel.write(request("0")) > 0; i++) {
        Thread.onSpinWait();
      }
    }

    private SocketChannel connect() throws IOException {
      SocketChannel channel = SocketChannel.open();
      channel.setOption(StandardSocketOptions.SO_RCVBUF, 64 * 1024);
      channel.connect(server);
      channel.configureBlocking(false);
      return channel;
    }

    /** As the page does: for what it has not seen. */
    private static ByteBuffer request(String seen) {
      return StandardCharsets.US_ASCII.encode(
          "GET /page/data?after=" + seen + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
  }
}
