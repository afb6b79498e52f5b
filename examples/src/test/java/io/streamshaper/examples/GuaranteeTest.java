package io.streamshaper.examples;

import static org.assertj.core.api.Assertions.assertThat;

import io.streamshaper.examples.History.Entry;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** The guarantees tell what may happen from what must not. */
class GuaranteeTest {
  private final History history = new History("key");

  @Test
  void anEvenRunKeepsAll() {
    sent(6);
    forwarded(0, 1, 3);
    dropped(2);
    queued(4);
    add(history.unread(), List.of(), 5);
    assertThat(violated()).isEmpty();
  }

  @Test
  void aRecordWithoutTraceIsLost() {
    sent(3);
    forwarded(0, 2);
    assertThat(violated()).containsExactly(Guarantee.NOTHING_LOST);
    assertThat(Guarantee.NOTHING_LOST.offender(history)).hasValue(1);
  }

  @Test
  void aRecordThatWasNeverSentIsInvented() {
    sent(1);
    forwarded(0, 1);
    assertThat(violated()).containsExactly(Guarantee.NOTHING_INVENTED);
  }

  @Test
  void aRecordThatWasDroppedAndIsForwardedIsThereTwice() {
    sent(2);
    forwarded(0, 1);
    dropped(0);
    assertThat(violated()).containsExactly(Guarantee.NOTHING_TWICE);
  }

  @Test
  void aRecordThatWasForwardedAndIsStillQueuedIsThereTwice() {
    sent(2);
    forwarded(0, 1);
    queued(1);
    assertThat(violated()).containsExactly(Guarantee.NOTHING_TWICE);
  }

  @Test
  void aDropWithoutAReasonIsNotAccountedFor() {
    sent(1);
    add(history.dropped(), List.of(), 0);
    assertThat(violated()).containsExactly(Guarantee.ONE_REASON_EACH);
  }

  @Test
  void aDropWithTwoReasonsIsNotAccountedFor() {
    sent(1);
    add(history.dropped(), List.of("codel", "ceiling"), 0);
    assertThat(violated()).containsExactly(Guarantee.ONE_REASON_EACH);
  }

  @Test
  void twoRecordsThatChangedPlacesAreNoReplay() {
    sent(3);
    forwarded(0, 2, 1);
    assertThat(violated()).containsExactly(Guarantee.IN_ORDER, Guarantee.IN_ORDER_BUT_FOR_REPLAYS);
  }

  @Test
  void twoDropsThatChangedPlacesAreNoReplay() {
    sent(3);
    dropped(1, 0, 2);
    assertThat(violated()).containsExactly(Guarantee.IN_ORDER, Guarantee.IN_ORDER_BUT_FOR_REPLAYS);
  }

  @Test
  void aRecordThatIsForwardedBeforeAnEarlierOneThatIsQueuedIsOutOfOrder() {
    sent(2);
    forwarded(1);
    queued(0);
    assertThat(violated()).containsExactly(Guarantee.IN_ORDER);
  }

  /** The queue had 1 and 2; 3 had not come to rest, and was committed. */
  @Test
  void aReplayMayEndBeforeWhatWasForwardedLast() {
    sent(5);
    forwarded(0, 1, 2, 3, 1, 2, 4);
    assertThat(violated()).containsExactly(Guarantee.NOTHING_TWICE, Guarantee.IN_ORDER);
    assertThat(history.replays()).isEqualTo(1);
    assertThat(history.repeated()).isEqualTo(2);
  }

  /** The drop of 1 was not acknowledged when the crash came, and so neither it nor 2 committed. */
  @Test
  void whatACrashHasUndoneMayComeLateIfAllThatFollowedIsRepeated() {
    sent(4);
    forwarded(0, 2, 1, 2, 3);
    assertThat(violated()).containsExactly(Guarantee.NOTHING_TWICE, Guarantee.IN_ORDER);
  }

  @Test
  void theOffenderIsShownWithItsNeighboursAndWhereEachAppeared() {
    sent(9);
    forwarded(0, 1, 2, 3);
    dropped(5);
    assertThat(history.around(4))
        .startsWith("key key, record 4")
        .contains("\n  3: sent 0@3 forwarded 0@3", "\n  4: sent 0@4\n", "dropped 0@0 [codel]")
        .doesNotContain("\n  0:", "\n  8:");
  }

  private Set<Guarantee> violated() {
    Set<Guarantee> violated = new TreeSet<>();
    for (Guarantee guarantee : Guarantee.values()) {
      if (guarantee.offender(history).isPresent()) {
        violated.add(guarantee);
      }
    }
    return violated;
  }

  private void sent(int records) {
    add(history.sent(), List.of(), LongStream.range(0, records).toArray());
  }

  private void forwarded(long... numbers) {
    add(history.forwarded(), List.of(), numbers);
  }

  private void dropped(long... numbers) {
    add(history.dropped(), List.of("codel"), numbers);
  }

  private void queued(long... numbers) {
    add(history.queued(), List.of(), numbers);
  }

  private static void add(List<Entry> entries, List<String> reasons, long... numbers) {
    Arrays.stream(numbers)
        .forEach(number -> entries.add(new Entry(number, 0, entries.size(), reasons)));
  }
}
