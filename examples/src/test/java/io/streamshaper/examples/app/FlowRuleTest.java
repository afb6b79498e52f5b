package io.streamshaper.examples.app;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FlowRuleTest {
  private final AtomicInteger shared = new AtomicInteger();

  @ParameterizedTest
  @CsvSource(
      delimiter = ' ',
      value = {
        "{\"a\":{\"b\":\"x\"}} x",
        "{\"a\":{\"b\":7}} 7",
        "{\"a\":{\"b\":true}} true",
        "{\"a\":{\"b\":[1]}} [1]",
        "{\"a\":{\"b\":\"\\u00fc\"}} ü"
      })
  void whatThePointerFindsIsTheFlow(String value, String flow) {
    assertThat(flowOf("json:/a/b", value)).isEqualTo(flow);
    assertThat(shared).hasValue(0);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "not json",
        "{\"a\":{}}",
        "{\"a\":{\"b\":null}}",
        "{\"a\":{\"b\":1}} and more",
        "{\"a\":{\"b\":1}",
        "[]",
        "\u0000\u0001"
      })
  void valuesInWhichThePointerFindsNothingShareOneFlowAndAreCounted(String value) {
    assertThat(flowOf("json:/a/b", value)).isNull();
    assertThat(shared).hasValue(1);
  }

  @Test
  void valuesThatAreNullShareTheFlowToo() {
    assertThat(flowOf("json:/a/b", new Record<>(null, null, 0))).isNull();
    assertThat(shared).hasValue(1);
  }

  @Test
  void jsonTooDeepToReadSharesTheFlow() {
    assertThat(flowOf("json:/a", "{\"a\":" + "[".repeat(100_000))).isNull();
    assertThat(shared).hasValue(1);
  }

  @Test
  void theLastHeaderOfTheNameIsTheFlow() {
    Record<byte[], byte[]> record = new Record<>(null, null, 0);
    record
        .headers()
        .add("tenant", bytes("first"))
        .add("other", bytes("x"))
        .add("tenant", bytes("last"));
    assertThat(flowOf("header:tenant", record)).isEqualTo("last");
    assertThat(shared).hasValue(0);
  }

  @Test
  void recordsWithoutTheHeaderOrItsValueShareOneFlowAndAreCounted() {
    Record<byte[], byte[]> record = new Record<>(null, null, 0);
    assertThat(flowOf("header:tenant", record)).isNull();
    record.headers().add("tenant", null);
    assertThat(flowOf("header:tenant", record)).isNull();
    assertThat(shared).hasValue(2);
  }

  private String flowOf(String rule, String value) {
    return flowOf(rule, new Record<>(null, bytes(value), 0));
  }

  private String flowOf(String rule, Record<byte[], byte[]> record) {
    byte[] flow = FlowRule.of("app.flow", rule).flowOf(record, shared::incrementAndGet);
    return flow == null ? null : new String(flow, StandardCharsets.UTF_8);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
