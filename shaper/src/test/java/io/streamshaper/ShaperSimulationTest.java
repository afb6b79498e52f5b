package io.streamshaper;

import org.junit.jupiter.api.Test;

/**
 * Many random long runs. {@code -Dsimulation.seed=N} repeats one; {@code -Dsimulation.seeds=N} runs
 * so many, from {@code -Dsimulation.first} on.
 */
class ShaperSimulationTest {
  private static final long SEEDS = 200;

  @Test
  void whateverHappensThePromisesHold() {
    Long only = Long.getLong("simulation.seed");
    long first = only != null ? only : Long.getLong("simulation.first", 1);
    long seeds = only != null ? 1 : Long.getLong("simulation.seeds", SEEDS);
    for (long seed = first; seed < first + seeds; seed++) {
      try (ShaperSimulation simulation = new ShaperSimulation(seed)) {
        simulation.run();
      } catch (RuntimeException | AssertionError e) {
        throw new AssertionError(
            "repeat with: mvn -pl shaper test -Dtest=ShaperSimulationTest -Dsimulation.seed="
                + seed
                + "\n"
                + e.getMessage(),
            e);
      }
    }
  }
}
