package comparison;

import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** A candidate of one Lease: its arguments, its work, and its elections, one after the other, until SIGTERM. */
final class Candidate {
  private final Map<String, String> options = new HashMap<>();
  private final Log log;
  private final Work work;
  private volatile boolean isOver;

  /** Reads the arguments, and ends the process when its standard input ends. */
  Candidate(String[] arguments) throws IOException {
    for (int at = 0; at + 1 < arguments.length; at += 2) {
      options.put(arguments[at].substring("--".length()), arguments[at + 1]);
    }
    log = new Log(option("log"), identity());
    work = new Work(log, millis("work-ms"));
    endWithTheParent();
  }

  /** An election that is good for one term. */
  interface Election {
    /** Competes, and returns when the term is over. */
    void run(Work work) throws Exception;

    /** Gives the Lease up. The work has ended. */
    void release() throws Exception;
  }

  /** Competes until SIGTERM. The work ends before the election. */
  void compete(Election election) throws InterruptedException {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(election)));
    log.append("ready");
    while (!isOver) {
      try {
        election.run(work);
      } catch (Exception ended) {
        // The next one goes on.
      }
      work.stop();
    }
    Thread.sleep(Long.MAX_VALUE);
  }

  private void stop(Election election) {
    isOver = true;
    try {
      work.finish();
      election.release();
    } catch (Exception ended) {
      Thread.currentThread().interrupt();
    }
  }

  String lock() {
    return option("lock");
  }

  String identity() {
    return option("identity");
  }

  Duration lease() {
    return millis("lease-ms");
  }

  Duration renewDeadline() {
    return millis("renew-ms");
  }

  Duration retryPeriod() {
    return millis("retry-ms");
  }

  /** The limit of client-go for one request. */
  int requestTimeout() {
    return Math.max(1000, (int) renewDeadline().toMillis() / 2);
  }

  private String option(String name) {
    return options.get(name);
  }

  private Duration millis(String name) {
    return Duration.ofMillis(Long.parseLong(option(name)));
  }

  private static void endWithTheParent() {
    var thread = new Thread(() -> {
      try (InputStream input = System.in) {
        input.transferTo(java.io.OutputStream.nullOutputStream());
      } catch (IOException ended) {
        // The parent has ended, too.
      }
      Runtime.getRuntime().halt(1);
    });
    thread.setDaemon(true);
    thread.start();
  }
}
