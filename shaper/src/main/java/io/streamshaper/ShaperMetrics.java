package io.streamshaper;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.streamshaper.aqm.DropReason;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;
import org.apache.kafka.streams.processor.TaskId;

/**
 * Shows what a shaper does in a Micrometer registry: the same meters for each task, tagged with
 * shaper and task, there while the task is. No key is ever a tag. Thread-safe.
 */
public final class ShaperMetrics {
  private static final String RECORDS = "records";

  private final MeterRegistry registry;

  private ShaperMetrics(MeterRegistry registry) {
    this.registry = registry;
  }

  /** Meters in this registry, for any number of shapers. */
  public static ShaperMetrics in(MeterRegistry registry) {
    return new ShaperMetrics(Objects.requireNonNull(registry, "registry"));
  }

  /** Meters of a task that begins. */
  TaskMeters open(String shaper, TaskId task, boolean hasRate) {
    TaskMeters meters = new TaskMeters(Tags.of("shaper", shaper, "task", task.toString()));
    if (hasRate) {
      meters.showTokens();
    }
    return meters;
  }

  /** The meters of one task. */
  final class TaskMeters implements AutoCloseable {
    private final Tags tags;
    private final List<Meter> meters = new ArrayList<>();
    private final TaskStats stats;

    private TaskMeters(Tags tags) {
      this.tags = tags;
      Timer sojourn =
          add(
              Timer.builder("shaper.sojourn")
                  .description("Time from its enqueue time to its departure of a forwarded record")
                  .tags(tags)
                  .register(vacant("shaper.sojourn", tags)));
      stats = new TaskStats(nanos -> sojourn.record(nanos, TimeUnit.NANOSECONDS));
      outcome("received", "none", TaskStats::received);
      outcome("restored", "none", TaskStats::restored);
      outcome("forwarded", "none", TaskStats::forwarded);
      for (DropReason reason : DropReason.values()) {
        outcome("dropped", reason.name().toLowerCase(Locale.ROOT), task -> task.dropped(reason));
      }
      outcome("unreadable", "none", TaskStats::unreadable);
      counter(
          "shaper.marks",
          RECORDS,
          "Records that were marked where they would have been dropped, were they droppable",
          TaskStats::marked);
      counter(
          "shaper.timestamps.implausible",
          RECORDS,
          "Records whose timestamp was too far from the present to be believed",
          TaskStats::implausible);
      counter(
          "shaper.clock.steps", "steps", "Times that the clock went back", TaskStats::clockSteps);
      gauge("shaper.queued.records", RECORDS, "Records queued", task -> task.held().records());
      gauge("shaper.queued.bytes", "bytes", "Bytes queued", task -> task.held().bytes());
      flows("new", task -> task.held().newFlows());
      flows("old", task -> task.held().oldFlows());
      flows("idle", task -> task.held().idleFlows());
      gauge(
          "shaper.flows.dropping",
          "flows",
          "Flows whose delay is standing and that are being cut",
          task -> task.held().droppingFlows());
      gauge(
          "shaper.flow.backlog.max",
          "cost",
          "Backlog of the fattest flow, in cost units",
          task -> task.held().largestBacklog());
    }

    private void showTokens() {
      gauge(
          "shaper.rate.tokens",
          "cost",
          "What may leave at once, in cost units; negative while in debt",
          task -> task.held().tokens());
    }

    TaskStats stats() {
      return stats;
    }

    /** Removes the meters, but not those of a successor that has opened meanwhile. */
    @Override
    public void close() {
      for (Meter meter : meters) {
        if (current(meter) == meter) {
          registry.remove(meter);
        }
      }
    }

    private Meter current(Meter meter) {
      return registry.find(meter.getId().getName()).tags(meter.getId().getTags()).meter();
    }

    private void outcome(String outcome, String reason, ToDoubleFunction<TaskStats> value) {
      counter(
          "shaper.records",
          RECORDS,
          "Records by what became of them",
          value,
          Tag.of("outcome", outcome),
          Tag.of("reason", reason));
    }

    /** One description for all: Prometheus has no more for a name. */
    private void flows(String list, ToDoubleFunction<TaskStats> value) {
      gauge(
          "shaper.flows",
          "flows",
          "Flows that just became busy (new), stay busy (old), or are remembered a while (idle)",
          value,
          Tag.of("list", list));
    }

    private void counter(
        String name,
        String unit,
        String description,
        ToDoubleFunction<TaskStats> value,
        Tag... more) {
      Tags all = tags.and(more);
      add(
          FunctionCounter.builder(name, stats, value)
              .baseUnit(unit)
              .description(description)
              .tags(all)
              .register(vacant(name, all)));
    }

    private void gauge(
        String name,
        String unit,
        String description,
        ToDoubleFunction<TaskStats> value,
        Tag... more) {
      Tags all = tags.and(more);
      add(
          Gauge.builder(name, stats, value)
              .baseUnit(unit)
              .description(description)
              .tags(all)
              .register(vacant(name, all)));
    }

    private <M extends Meter> M add(M meter) {
      meters.add(meter);
      return meter;
    }

    /** A task can come back before its predecessor has gone: the last one has the name. */
    private MeterRegistry vacant(String name, Tags all) {
      Meter predecessor = registry.find(name).tags(all).meter();
      if (predecessor != null) {
        registry.remove(predecessor);
      }
      return registry;
    }
  }
}
