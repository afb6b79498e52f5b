package io.streamshaper.examples.app;

import com.fasterxml.jackson.core.JsonPointer;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.streamshaper.Shaper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Which flow a record belongs to: its key's, a header's, or that of a place in its value, which is
 * JSON. Records that have none share one flow.
 */
final class FlowRule {
  static final String KEY = "key";
  private static final String HEADER = "header:";
  private static final String JSON = "json:";

  private static final JsonMapper MAPPER =
      JsonMapper.builder().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();

  private final Function<Record<byte[], byte[]>, byte[]> classifier;

  /**
   * @param classifier null: the key is
   */
  private FlowRule(Function<Record<byte[], byte[]>, byte[]> classifier) {
    this.classifier = classifier;
  }

  /**
   * Reads {@code key}, {@code header:NAME} or {@code json:/POINTER}.
   *
   * @throws ConfigException if it is none of them
   */
  static FlowRule of(String setting, String text) {
    if (text.equals(KEY)) {
      return new FlowRule(null);
    }
    if (text.startsWith(HEADER) && text.length() > HEADER.length()) {
      String name = text.substring(HEADER.length());
      return new FlowRule(record -> inHeader(record, name));
    }
    if (text.startsWith(JSON + "/")) {
      JsonPointer pointer = JsonPointer.compile(text.substring(JSON.length()));
      return new FlowRule(record -> inJson(record, pointer));
    }
    throw new ConfigException(setting + " must be key, header:NAME or json:/POINTER, was " + text);
  }

  /**
   * Makes a shaper follow it.
   *
   * @param onShared called for each record that has no flow of its own
   */
  void apply(Shaper<byte[], byte[]> shaper, Runnable onShared) {
    if (classifier != null) {
      shaper.flowBy(record -> flowOf(record, onShared), Serdes.ByteArray());
    }
  }

  byte[] flowOf(Record<byte[], byte[]> record, Runnable onShared) {
    byte[] flow = classifier.apply(record);
    if (flow == null) {
      onShared.run();
    }
    return flow;
  }

  private static byte[] inHeader(Record<byte[], byte[]> record, String name) {
    Header header = record.headers().lastHeader(name);
    return header == null ? null : header.value();
  }

  private static byte[] inJson(Record<byte[], byte[]> record, JsonPointer pointer) {
    if (record.value() == null) {
      return null;
    }
    try {
      return bytes(MAPPER.readTree(record.value()).at(pointer));
    } catch (IOException notJson) {
      return null;
    }
  }

  private static byte[] bytes(JsonNode node) {
    if (node.isMissingNode() || node.isNull()) {
      return null;
    }
    String text = node.isContainerNode() ? node.toString() : node.asText();
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
