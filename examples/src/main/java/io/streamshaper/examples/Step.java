package io.streamshaper.examples;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * The downstream step of the demo: calls something that takes its time, and writes down how old
 * each record was when its turn came. One instance serves one task.
 */
final class Step {
  private static final long HOUR_MS = TimeUnit.HOURS.toMillis(1);

  private final Call call;
  private final Recorder hotDelayMs = new Recorder(HOUR_MS, 3);
  private final Recorder quietDelayMs = new Recorder(HOUR_MS, 3);
  private volatile long calls;
  private volatile long busyNanos;

  /** What the step waits for. */
  interface Call {
    void run();

    /** A call that blocks for as long as it takes. */
    static Call blocking(long nanos) {
      return () -> parkUntil(System.nanoTime() + nanos);
    }

    /**
     * A service that takes so many calls a second, a tenth of a second's worth at once, and lets
     * the caller wait beyond that.
     */
    static Call limited(double perSecond) {
      long nanosPerCall = (long) (TimeUnit.SECONDS.toNanos(1) / perSecond);
      long toleranceNanos = TimeUnit.MILLISECONDS.toNanos(100);
      long[] freeAt = {System.nanoTime()};
      return () -> {
        freeAt[0] = Math.max(freeAt[0], System.nanoTime()) + nanosPerCall;
        parkUntil(freeAt[0] - toleranceNanos);
      };
    }

    private static void parkUntil(long nanos) {
      for (long left = nanos - System.nanoTime(); left > 0; left = nanos - System.nanoTime()) {
        LockSupport.parkNanos(left);
      }
    }
  }

  Step(Call call) {
    this.call = call;
  }

  /** Calls that have returned. From any thread. */
  long calls() {
    return calls;
  }

  /** Time spent in calls. From any thread. */
  long busyNanos() {
    return busyNanos;
  }

  /** Delays in milliseconds since the last call. From any thread. */
  Histogram delayMs(boolean hot) {
    return recorder(hot).getIntervalHistogram();
  }

  private Recorder recorder(boolean hot) {
    return hot ? hotDelayMs : quietDelayMs;
  }

  Processor<String, byte[], String, byte[]> processor() {
    return new Processor<>() {
      private ProcessorContext<String, byte[]> context;

      @Override
      public void init(ProcessorContext<String, byte[]> context) {
        this.context = context;
      }

      @Override
      public void process(Record<String, byte[]> record) {
        long delayMs = System.currentTimeMillis() - record.timestamp();
        recorder(Load.isHot(record.key())).recordValue(Math.min(HOUR_MS, Math.max(0, delayMs)));
        work();
        context.forward(record);
      }
    };
  }

  @SuppressWarnings("NonAtomicVolatileUpdate") // written by the task's thread only
  private void work() {
    long start = System.nanoTime();
    call.run();
    busyNanos += System.nanoTime() - start;
    calls++;
  }
}
