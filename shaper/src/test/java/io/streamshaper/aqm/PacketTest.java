package io.streamshaper.aqm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class PacketTest {
  @Test
  void theSojournCountsFromTheTimestamp() {
    assertThat(packet(100).sojournNanos(107)).isEqualTo(7);
    assertThat(packet(-100).sojournNanos(7)).isEqualTo(107);
  }

  @Test
  void aTimestampInTheFutureHasNoSojourn() {
    assertThat(packet(100).sojournNanos(99)).isZero();
    assertThat(packet(Long.MAX_VALUE).sojournNanos(Long.MIN_VALUE)).isZero();
  }

  @Test
  void theSojournNeverWraps() {
    assertThat(packet(Long.MIN_VALUE).sojournNanos(Long.MAX_VALUE)).isEqualTo(Long.MAX_VALUE);
    assertThat(packet(Long.MIN_VALUE).sojournNanos(0)).isEqualTo(Long.MAX_VALUE);
    assertThat(packet(Long.MIN_VALUE).sojournNanos(-1)).isEqualTo(Long.MAX_VALUE);
    assertThat(packet(Long.MIN_VALUE).sojournNanos(-2)).isEqualTo(Long.MAX_VALUE - 1);
  }

  @Test
  void marksAddUp() {
    Packet packet = packet(0);
    assertThat(packet.marks()).isZero();
    packet.mark(Packet.THRESHOLD_MARK);
    packet.mark(Packet.CODEL_MARK);
    packet.mark(Packet.CODEL_MARK);
    assertThat(packet.marks()).isEqualTo(Packet.CODEL_MARK | Packet.THRESHOLD_MARK).isEqualTo(3);
  }

  @Test
  void itRemembersWhatItWasGiven() {
    Packet packet = new Packet(-1, 2, 0, true, 3);
    assertThat(packet.timestampNanos()).isEqualTo(-1);
    assertThat(packet.cost()).isEqualTo(2);
    assertThat(packet.bytes()).isZero();
    assertThat(packet.markable()).isTrue();
    assertThat(packet.expiresNanos()).isEqualTo(3);
  }

  @Test
  void aCostBelowOneIsRefused() {
    assertThatThrownBy(() -> new Packet(0, 0, 0, false, Packet.NEVER))
        .hasMessage("cost must be at least 1, was 0");
  }

  @Test
  void negativeBytesAreRefused() {
    assertThatThrownBy(() -> new Packet(0, 1, -1, false, Packet.NEVER))
        .hasMessage("bytes must be at least 0, was -1");
  }

  private static Packet packet(long timestampNanos) {
    return new Packet(timestampNanos, 1, 0, false, Packet.NEVER);
  }
}
