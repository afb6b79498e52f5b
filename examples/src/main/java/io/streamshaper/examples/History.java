package io.streamshaper.examples;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** What the topics tell of one key's records: each list in the order of its topic. */
final class History {
  /** Records to the left and right of an offending one that are shown with it. */
  private static final long NEIGHBOURS = 3;

  private final String key;
  private final List<Entry> sent = new ArrayList<>();
  private final List<Entry> forwarded = new ArrayList<>();
  private final List<Entry> dropped = new ArrayList<>();
  private final List<Entry> queued = new ArrayList<>();
  private final List<Entry> unread = new ArrayList<>();

  /**
   * One appearance of a record.
   *
   * @param number its place among the records of its key
   * @param reasons why it was dropped
   */
  record Entry(long number, int partition, long offset, List<String> reasons) {
    @Override
    public String toString() {
      String place = partition + "@" + offset;
      return reasons.isEmpty() ? place : place + " " + reasons;
    }
  }

  History(String key) {
    this.key = key;
  }

  String key() {
    return key;
  }

  List<Entry> sent() {
    return sent;
  }

  List<Entry> forwarded() {
    return forwarded;
  }

  List<Entry> dropped() {
    return dropped;
  }

  /** In the order of arrival. */
  List<Entry> queued() {
    return queued;
  }

  /** Sent, and behind what the application has committed. */
  List<Entry> unread() {
    return unread;
  }

  /** Forwarded or dropped, and not for the first time. */
  long repeated() {
    return (long) forwarded.size() + dropped.size() - numbers(forwarded, dropped).size();
  }

  /** How often what was forwarded went back to an earlier record. */
  long replays() {
    long replays = 0;
    for (int i = 1; i < forwarded.size(); i++) {
      if (forwarded.get(i).number() <= forwarded.get(i - 1).number()) {
        replays++;
      }
    }
    return replays;
  }

  /** The numbers in some of the lists. */
  @SafeVarargs
  static Set<Long> numbers(List<Entry>... lists) {
    Set<Long> numbers = new HashSet<>();
    for (List<Entry> list : lists) {
      list.forEach(entry -> numbers.add(entry.number));
    }
    return numbers;
  }

  /** The records around one of them, and where each appeared. */
  String around(long number) {
    StringBuilder text = new StringBuilder();
    text.append("key %s, record %d".formatted(key, number));
    for (long n = Math.max(0, number - NEIGHBOURS); n <= number + NEIGHBOURS; n++) {
      text.append("\n  ").append(n).append(":");
      append(text, "sent", sent, n);
      append(text, "forwarded", forwarded, n);
      append(text, "dropped", dropped, n);
      append(text, "queued", queued, n);
      append(text, "unread", unread, n);
    }
    return text.toString();
  }

  private static void append(StringBuilder text, String where, List<Entry> entries, long number) {
    entries.stream()
        .filter(entry -> entry.number == number)
        .forEach(entry -> text.append(" ").append(where).append(" ").append(entry));
  }
}
