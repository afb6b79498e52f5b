package io.streamshaper.examples.page;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.streamshaper.examples.http.HttpServer.Answer;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class PageTest {
  private final Semaphore wanted = new Semaphore(0);
  private final Semaphore begun = new Semaphore(0);
  private boolean first = true;
  private final Page page = new Page(this::snapshot, null);

  @AfterEach
  void close() {
    wanted.release();
    page.close();
  }

  @Test
  void whoeverHasSeenTheSameGetsAnAnswerThatWasMadeOnce() throws Exception {
    takeOne();
    assertThat(ask("after=0")).isSameAs(ask("after=0")).isSameAs(ask(null));
    Answer before = ask("after=1");
    assertThat(ask("after=1")).isSameAs(before);
    takeOne();
    assertThat(ask("after=1")).isNotSameAs(before);
  }

  @Test
  void anAnswerHasWhatWasNotSeen() throws Exception {
    takeOne();
    takeOne();
    assertThat(points("after=0")).isEqualTo(2);
    assertThat(points("after=1")).isEqualTo(1);
    assertThat(points("after=2")).isZero();
    assertThat(points("after=999999999999999999")).as("seen of another page").isZero();
    assertThat(read("after=0").get("settings").isNull()).isFalse();
    assertThat(read("after=1").get("settings").isNull()).as("not said again").isTrue();
  }

  private int points(String query) throws IOException {
    return read(query).get("points").size();
  }

  private JsonNode read(String query) throws IOException {
    return new ObjectMapper().readTree(ask(query).body());
  }

  private Answer ask(String query) {
    return page.answers().get("/page/data").apply(query);
  }

  /** Ends when the page has begun with the next, and so has kept this one. */
  private void takeOne() {
    wanted.release();
    begun.acquireUninterruptibly();
  }

  private Snapshot snapshot() {
    if (!first) {
      begun.release();
    }
    first = false;
    wanted.acquireUninterruptibly();
    return new Snapshot(
        new Snapshot.Point(0, true, Map.of(), Map.of(), 0L, 0L),
        new Snapshot.Now("running", null, null),
        List.of());
  }
}
