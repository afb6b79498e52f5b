package io.streamshaper.examples;

import io.streamshaper.examples.History.Entry;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.streams.StreamsConfig;

/** What must be true of the records of each key, whatever happens. */
enum Guarantee {
  /** What was sent was forwarded or dropped, is queued, or was not read yet. */
  NOTHING_LOST {
    @Override
    OptionalLong offender(History history) {
      Set<Long> missing = History.numbers(history.sent());
      missing.removeAll(
          History.numbers(
              history.forwarded(), history.dropped(), history.queued(), history.unread()));
      return first(missing);
    }
  },

  /** What comes out was sent. */
  NOTHING_INVENTED {
    @Override
    OptionalLong offender(History history) {
      Set<Long> unknown = History.numbers(history.forwarded(), history.dropped(), history.queued());
      unknown.removeAll(History.numbers(history.sent()));
      return first(unknown);
    }
  },

  /** A record is forwarded, dropped, queued or not read yet: one of them, once. */
  NOTHING_TWICE {
    @Override
    OptionalLong offender(History history) {
      Set<Long> seen = new HashSet<>();
      return Stream.of(history.forwarded(), history.dropped(), history.queued(), history.unread())
          .flatMap(List::stream)
          .mapToLong(Entry::number)
          .filter(number -> !seen.add(number))
          .findFirst();
    }
  },

  /** Nothing overtakes an earlier record of its key. */
  IN_ORDER {
    @Override
    OptionalLong offender(History history) {
      OptionalLong late = overtaken(history.forwarded(), history.queued(), history.unread());
      return late.isPresent()
          ? late
          : overtaken(history.dropped(), history.queued(), history.unread());
    }
  },

  /**
   * As {@link #IN_ORDER}, but for replays: what comes late came before. Or else a crash has undone
   * it where it came before, and then all that followed it is repeated too.
   */
  IN_ORDER_BUT_FOR_REPLAYS {
    @Override
    OptionalLong offender(History history) {
      OptionalLong late =
          late(history.forwarded(), history.dropped(), history.queued(), history.unread());
      return late.isPresent()
          ? late
          : late(history.dropped(), history.forwarded(), history.queued(), history.unread());
    }
  },

  /** What is dropped says why, once. */
  ONE_REASON_EACH {
    @Override
    OptionalLong offender(History history) {
      return history.dropped().stream()
          .filter(entry -> entry.reasons().size() != 1)
          .mapToLong(Entry::number)
          .findFirst();
    }
  };

  static final Set<Guarantee> EXACTLY_ONCE =
      Set.of(NOTHING_LOST, NOTHING_INVENTED, NOTHING_TWICE, IN_ORDER, ONE_REASON_EACH);

  static final Set<Guarantee> AT_LEAST_ONCE =
      Set.of(NOTHING_LOST, NOTHING_INVENTED, IN_ORDER_BUT_FOR_REPLAYS, ONE_REASON_EACH);

  /** What a {@code processing.guarantee} promises. */
  static Set<Guarantee> of(String processingGuarantee) {
    return processingGuarantee.equals(StreamsConfig.AT_LEAST_ONCE) ? AT_LEAST_ONCE : EXACTLY_ONCE;
  }

  /** The first record of which it is not true. */
  abstract OptionalLong offender(History history);

  private static OptionalLong first(Set<Long> numbers) {
    return numbers.stream().mapToLong(Long::longValue).min();
  }

  @SafeVarargs
  private static OptionalLong overtaken(List<Entry>... inTurn) {
    long highest = -1;
    for (List<Entry> entries : inTurn) {
      for (Entry entry : entries) {
        if (entry.number() < highest) {
          return OptionalLong.of(entry.number());
        }
        highest = entry.number();
      }
    }
    return OptionalLong.empty();
  }

  /** The first record that comes after a later one, and is not part of a replay. */
  @SafeVarargs
  private static OptionalLong late(List<Entry> run, List<Entry>... others) {
    Set<Long> elsewhere = History.numbers(others);
    Map<Long, Integer> lastPlaces = new HashMap<>();
    for (int place = 0; place < run.size(); place++) {
      lastPlaces.put(run.get(place).number(), place);
    }
    TreeSet<Long> seen = new TreeSet<>();
    for (int place = 0; place < run.size(); place++) {
      int here = place;
      long number = run.get(place).number();
      boolean first = seen.add(number) && !elsewhere.contains(number);
      if (first
          && seen.tailSet(number, false).stream()
              .anyMatch(later -> lastPlaces.get(later) < here && !elsewhere.contains(later))) {
        return OptionalLong.of(number);
      }
    }
    return OptionalLong.empty();
  }
}
