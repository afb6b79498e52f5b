package io.streamshaper;

import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Headers for serdes, which may change what they are given. Most records have none and most serdes
 * add none: then the same empty ones will do again. Not thread-safe.
 */
final class Scratch {
  private Headers empty = copyOf(null);

  /**
   * A copy, valid until the next call.
   *
   * @param headers null if there are none
   */
  Headers of(Headers headers) {
    if (!isEmpty(headers)) {
      return copyOf(headers);
    }
    if (!isEmpty(empty)) {
      empty = copyOf(null);
    }
    return empty;
  }

  private static boolean isEmpty(Headers headers) {
    return headers == null || headers.toArray().length == 0;
  }

  private static Headers copyOf(Headers headers) {
    return new Record<>(null, null, 0, headers).headers();
  }
}
