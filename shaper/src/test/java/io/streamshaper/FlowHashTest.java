package io.streamshaper;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.utils.Bytes;
import org.junit.jupiter.api.Test;

class FlowHashTest {
  private static final BigInteger PRIME = BigInteger.TWO.pow(61).subtract(BigInteger.ONE);

  @Test
  void isAPolynomialOfTheLengthAndTheWords() {
    FlowHash hash = new FlowHash(3);
    assertThat(hash.applyAsInt(null)).isZero();
    assertThat(hash.applyAsInt(flow())).isEqualTo(1 * 3 * 3);
    assertThat(hash.applyAsInt(flow(2))).isEqualTo((2 * 3 + 2) * 3);
    assertThat(hash.applyAsInt(flow(1, 0, 0, 0))).isEqualTo(((5 * 3 + 1) * 3) * 3);
    assertThat(hash.applyAsInt(flow(1, 2, 0, 0, 0, 1))).isEqualTo(((7 * 3 + 0x201) * 3 + 1) * 3);
  }

  @Test
  void isReducedByThePrime() {
    Random random = new Random(1);
    for (int i = 0; i < 10_000; i++) {
      long point = random.nextLong() >>> random.nextInt(8);
      int word = random.nextInt();
      BigInteger at = BigInteger.valueOf(point).mod(PRIME);
      BigInteger expected =
          BigInteger.valueOf(5)
              .multiply(at)
              .add(BigInteger.valueOf(word & 0xFFFF_FFFFL))
              .multiply(at)
              .multiply(at)
              .mod(PRIME);
      Bytes flow = flow(word & 0xFF, word >> 8 & 0xFF, word >> 16 & 0xFF, word >>> 24);
      assertThat(new FlowHash(point).applyAsInt(flow))
          .as("point %d, word %d", point, word)
          .isEqualTo(expected.intValue());
    }
  }

  @Test
  void keysMadeToCollideDoNot() {
    List<String> keys = collidingKeys();
    List<Bytes> flows =
        keys.stream().map(key -> Bytes.wrap(key.getBytes(StandardCharsets.UTF_8))).toList();
    assertThat(flows.stream().map(Bytes::hashCode).distinct()).hasSize(1);
    FlowHash hash = new FlowHash(new Random(1).nextLong());
    int places = 2 * flows.size();
    long longestChain =
        flows.stream()
            .collect(
                Collectors.groupingBy(
                    flow -> hash.applyAsInt(flow) & (places - 1), Collectors.counting()))
            .values()
            .stream()
            .mapToLong(Long::longValue)
            .max()
            .getAsLong();
    assertThat(longestChain).isLessThan(10);
  }

  /** The steps of a chain of them all would be 8 million. */
  @Test
  void theProcessorsFlowsDoNotCollideEither() {
    FakeTask task = new FakeTask((record, child) -> {});
    task.start(TestTopology.shaper(TestTopology.patient(1).burst(1)));
    collidingKeys().forEach(key -> task.pipe(key, "v", TestTopology.START_MS));
    Object processor = RestartableShaper.field(task, "processor");
    Object scheduler = RestartableShaper.field(processor, "scheduler");
    Object flows = RestartableShaper.field(scheduler, "flows");
    assertThat(RestartableShaper.<Long>field(flows, "steps")).isLessThan(40_000);
    task.close();
  }

  /** All of one {@link Bytes#hashCode}. */
  private static List<String> collidingKeys() {
    List<String> keys = List.of("");
    for (int i = 0; i < 12; i++) {
      List<String> longer = new ArrayList<>();
      keys.forEach(key -> longer.addAll(List.of(key + "Aa", key + "BB")));
      keys = longer;
    }
    return keys;
  }

  private static Bytes flow(int... bytes) {
    byte[] flow = new byte[bytes.length];
    IntStream.range(0, bytes.length).forEach(i -> flow[i] = (byte) bytes[i]);
    return Bytes.wrap(flow);
  }
}
