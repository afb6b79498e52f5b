package io.streamshaper.aqm;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.streamshaper.aqm.FaultyCodel.BacklogCheck;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** A golden trace: events, and the one right decision on each of them. */
final class Trace {
  private static final String EVENTS = ".events.csv";
  private static final String EXPECTED = ".expected.csv";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path folder;
  private final String name;

  private final List<String> drops = new ArrayList<>();
  private final List<String> decisions = new ArrayList<>();
  private FqCodel<String, KeyedPacket> scheduler;
  private long nextId;

  private Trace(Path folder, String name) {
    this.folder = folder;
    this.name = name;
  }

  /** The traces of a folder, at least one. */
  static List<Trace> in(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      List<Trace> traces =
          files
              .map(file -> file.getFileName().toString())
              .filter(file -> file.endsWith(EVENTS) || file.endsWith(EXPECTED))
              .map(file -> file.replace(EVENTS, "").replace(EXPECTED, ""))
              .distinct()
              .sorted()
              .map(name -> new Trace(folder, name))
              .toList();
      assertThat(traces).as("traces in " + folder).isNotEmpty();
      return traces;
    }
  }

  String name() {
    return name;
  }

  /** Replays the events and compares each decision. */
  void verify() throws IOException {
    List<String> lines = lines(EVENTS);
    List<String> expected = lines(EXPECTED);
    JsonNode header = JSON.readTree(lines.get(0));
    List<String> events = lines.subList(1, lines.size());
    assertThat(header.required("format").asInt()).as(name + ": format").isEqualTo(1);
    assertThat(events).as(name + ": events").hasSize(header.required("events").asInt());
    assertThat(events).as(name + ": events").isNotEmpty();

    scheduler = scheduler(header.required("config"));
    for (int i = 0; i < events.size(); i++) {
      decide(i, events.get(i).split(",", -1));
    }
    compare(events, expected);
  }

  private List<String> lines(String suffix) throws IOException {
    Path file = folder.resolve(name + suffix);
    assertThat(file).as("%s: its file %s", name, file.getFileName()).exists();
    // Not by Files.readAllLines: a carriage return may be part of a key.
    return List.of(Files.readString(file, UTF_8).split("\n"));
  }

  private FqCodel<String, KeyedPacket> scheduler(JsonNode config) {
    Settings settings = new Settings();
    settings.targetNanos = config.required("target_ns").asLong();
    settings.intervalNanos = config.required("interval_ns").asLong();
    settings.mtu = config.required("mtu").asLong();
    settings.ceilingNanos = config.required("ceiling_ns").asLong();
    settings.marking = config.required("ecn").asBoolean();
    settings.markThresholdNanos = config.required("ce_threshold_ns").asLong();
    settings.quantum = config.required("quantum").asLong();
    settings.limit = config.required("limit").asLong();
    settings.limitBytes = config.required("memory_limit").asLong();
    settings.dropBatch = Math.toIntExact(config.required("drop_batch").asLong());
    JsonNode weights = config.required("weights");
    settings.weight = key -> Math.toIntExact(weights.path(key).asLong(1));

    if (!config.has("backlog_check") && !config.has("reset_on_empty")) {
      return settings.scheduler(this::dropped);
    }
    String check = config.path("backlog_check").asText("per_flow").toUpperCase(Locale.ROOT);
    boolean reset = config.path("reset_on_empty").asBoolean(true);
    FaultyCodel codel = new FaultyCodel(settings, BacklogCheck.valueOf(check), reset);
    return settings.scheduler(codel, this::dropped);
  }

  private void dropped(KeyedPacket packet, DropReason reason) {
    drops.add(packet.id + ":" + reason.name().toLowerCase(Locale.ROOT));
  }

  private void decide(int event, String[] fields) {
    drops.clear();
    switch (fields[0]) {
      case "E" -> {
        KeyedPacket packet = packet(fields);
        scheduler.enqueue(packet.key, packet);
        if (!drops.isEmpty()) {
          decisions.add(decision(event, "E", null));
        }
      }
      case "D" -> {
        KeyedPacket packet = scheduler.dequeue(Long.parseLong(fields[1]), Long.MAX_VALUE);
        decisions.add(decision(event, "D", packet));
      }
      default -> fail("%s: event %d is neither E nor D", name, event);
    }
  }

  private KeyedPacket packet(String[] fields) {
    return new KeyedPacket(
        fields[2],
        nextId++,
        Long.parseLong(fields[3]),
        Long.parseLong(fields[4]),
        Long.parseLong(fields[5]),
        fields[6].equals("1"),
        fields[7].isEmpty() ? Packet.NEVER : Long.parseLong(fields[7]));
  }

  private String decision(int event, String operation, KeyedPacket packet) {
    return Stream.of(
            event,
            operation,
            packet == null ? "-" : packet.id,
            packet == null ? 0 : packet.marks(),
            scheduler.packets(),
            String.join(";", drops))
        .map(String::valueOf)
        .collect(joining(","));
  }

  private void compare(List<String> events, List<String> expected) {
    for (int i = 0; i < Math.max(decisions.size(), expected.size()); i++) {
      String actualLine = i < decisions.size() ? decisions.get(i) : "nothing";
      String expectedLine = i < expected.size() ? expected.get(i) : "nothing";
      if (!actualLine.equals(expectedLine)) {
        fail(
            "%s: line %d, event %s: expected %s, was %s",
            name, i + 1, event(events, expectedLine, actualLine), expectedLine, actualLine);
      }
    }
  }

  /** The event on which the two part: the earlier one, if one of them passed over it. */
  private static String event(List<String> events, String... decisions) {
    int event =
        Stream.of(decisions)
            .filter(decision -> decision.contains(","))
            .mapToInt(decision -> Integer.parseInt(decision.substring(0, decision.indexOf(','))))
            .min()
            .orElseThrow();
    return event + " (" + events.get(event) + ")";
  }
}
