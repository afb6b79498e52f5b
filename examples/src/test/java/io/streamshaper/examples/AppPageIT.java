package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.microsoft.playwright.Page;
import com.microsoft.playwright.options.ColorScheme;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.junit.jupiter.api.Test;

/** The page of {@code shaper app}, which shows and switches nothing. */
class AppPageIT {
  private final List<String> complaints = new ArrayList<>();

  @Test
  void showsDelaysQueuesAndDropsOfAllTasksAndSwitchesNothing() throws Exception {
    try (TestBrowser browser = TestBrowser.launch();
        TestBroker broker = TestBroker.start();
        Admin admin =
            Admin.create(
                Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()))) {
      List<String> topics = List.of("in", "out", "dropped");
      admin
          .createTopics(topics.stream().map(topic -> new NewTopic(topic, 2, (short) 1)).toList())
          .all()
          .get();
      Patience.await(
          "the topics are there", () -> admin.listTopics().names().get().containsAll(topics));
      try (ChildApp app = ChildApp.start(settings(broker, true));
          BackgroundLoad load =
              new BackgroundLoad(new Load(broker.bootstrapServers(), "in", 1000, 50, 5))) {
        app.awaitReady();
        String url = "http://127.0.0.1:" + app.port() + "/";
        Page page = browser.open(url, 1280, ColorScheme.LIGHT, complaints);
        Patience.await(
            "the hot key is being cut",
            () -> page.locator("#flows tr.cut").count() == 1 && text(page).contains("99 %"));

        assertThat(page.textContent("#flows tr.cut")).startsWith("hot");
        assertThat(text(page)).matches("Half of the records waited at most .*, 99 % at most .*");
        assertThat(page.textContent("#delay-legend")).contains("all keys p50", "all keys p99");
        assertThat(page.textContent("#settings")).contains("shaper.rate200/s");
        assertThat(page.isVisible("#switches")).isFalse();
        assertThat(app.get("/page/switches/shaper").statusCode()).isEqualTo(404);
        assertThat(complaints).isEmpty();
        load.stop();
      }
    }
  }

  @Test
  void isThereOnlyIfAskedFor() throws Exception {
    try (TestBroker broker = TestBroker.start();
        Admin admin =
            Admin.create(
                Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrapServers()))) {
      admin
          .createTopics(
              Stream.of("in", "out", "dropped").map(t -> new NewTopic(t, 1, (short) 1)).toList())
          .all()
          .get();
      try (ChildApp app = ChildApp.start(settings(broker, false))) {
        app.awaitReady();
        assertThat(app.get("/").statusCode()).isEqualTo(404);
        assertThat(app.get("/page/data").statusCode()).isEqualTo(404);
      }
    }
  }

  private static String text(Page page) {
    return page.textContent("#summary");
  }

  private static Map<String, Object> settings(TestBroker broker, boolean page) {
    return Map.of(
        "bootstrap.servers",
        broker.bootstrapServers(),
        "application.id",
        "paged",
        "input.topic",
        "in",
        "output.topic",
        "out",
        "dropped.topic",
        "dropped",
        "shaper.rate",
        200,
        "app.page",
        page);
  }
}
