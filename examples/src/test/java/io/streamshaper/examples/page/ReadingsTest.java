package io.streamshaper.examples.page;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.streamshaper.ShaperOptions;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.common.utils.Bytes;
import org.junit.jupiter.api.Test;

class ReadingsTest {
  private final Readings readings = new Readings(new SimpleMeterRegistry(), "shaper");

  @Test
  void theFirstTotalsAreNoRate() {
    assertThat(readings.perSecond(Map.of("in", 5.0))).containsEntry("in", 0.0);
    assertThat(readings.perSecond(Map.of("in", 6.0)).get("in")).isPositive();
  }

  @Test
  void aTotalThatFellIsNoRate() {
    readings.perSecond(Map.of("in", 5.0));

    assertThat(readings.perSecond(Map.of("in", 3.0))).containsEntry("in", 0.0);
  }

  @Test
  void aFlowIsShownAsTextIfItIsSome() {
    assertThat(Readings.name(null)).isEqualTo("(no key)");
    assertThat(Readings.name(bytes("customer-7 ä"))).isEqualTo("customer-7 ä");
    assertThat(Readings.name(bytes("a\nb"))).isEqualTo("610a62");
    assertThat(Readings.name(Bytes.wrap(new byte[] {0, 0, 0, 7}))).isEqualTo("00000007");
    assertThat(Readings.name(Bytes.wrap(new byte[] {(byte) 0xff}))).isEqualTo("ff");
    assertThat(Readings.name(bytes("x".repeat(1000)))).isEqualTo("x".repeat(60) + "…");
  }

  @Test
  void settingsSayWhichWereChosen() {
    assertThat(Readings.settings(ShaperOptions.builder().rate(500).build()))
        .filteredOn(Snapshot.Setting::chosen)
        .singleElement()
        .satisfies(
            setting -> {
              assertThat(setting.name()).isEqualTo("shaper.rate");
              assertThat(setting.value()).isEqualTo(500.0);
              assertThat(setting.documentation()).startsWith("Cost units a second");
            });
  }

  private static Bytes bytes(String text) {
    return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
  }
}
