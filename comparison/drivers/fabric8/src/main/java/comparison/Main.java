package comparison;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfig;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/** A candidate: fabric8's elector over a Lease of Kubernetes. comparison/README.md describes the contract. */
public final class Main {
  private Main() {}

  public static void main(String[] arguments) throws Exception {
    var options = parse(arguments);
    var log = new Log(options.get("log"), options.get("identity"));
    var work = new Work(log, millis(options, "work-ms"));
    endWithTheParent();
    var client = new KubernetesClientBuilder().withConfig(client(options)).build();
    var config = config(options, work);
    var isOver = new AtomicBoolean();
    var election = new AtomicReference<CompletableFuture<?>>();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(work, isOver, election)));
    log.append("ready");
    while (!isOver.get()) {
      // An elector is good for one term.
      var elector = client.leaderElector().withConfig(config).build();
      election.set(elector.start());
      try {
        election.get().get();
      } catch (Exception ended) {
        // The next elector goes on.
      }
      work.stop();
    }
    Thread.sleep(Long.MAX_VALUE);
  }

  /** The work ends before the election, whose cancellation releases the Lease. */
  private static void stop(Work work, AtomicBoolean isOver, AtomicReference<CompletableFuture<?>> election) {
    isOver.set(true);
    try {
      work.finish();
      var running = election.get();
      if (running != null) {
        running.cancel(true);
      }
      // The release is sent by another thread, and nothing tells of its end.
      Thread.sleep(200);
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
  }

  private static LeaderElectionConfig config(Map<String, String> options, Work work) {
    return new LeaderElectionConfigBuilder()
        .withName("comparison")
        .withLock(new LeaseLock("default", options.get("lock"), options.get("identity")))
        .withLeaseDuration(millis(options, "lease-ms"))
        .withRenewDeadline(millis(options, "renew-ms"))
        .withRetryPeriod(millis(options, "retry-ms"))
        .withReleaseOnCancel(true)
        .withLeaderCallbacks(new LeaderCallbacks(work::start, work::stop, leader -> {}))
        .build();
  }

  /** The limit of client-go for one request, and no retries but those of the elector. */
  private static Config client(Map<String, String> options) {
    var timeout = Math.max(1000, Integer.parseInt(options.get("renew-ms")) / 2);
    return new ConfigBuilder(Config.autoConfigure(null))
        .withConnectionTimeout(timeout)
        .withRequestTimeout(timeout)
        .withRequestRetryBackoffLimit(0)
        .build();
  }

  private static Map<String, String> parse(String[] arguments) {
    var options = new HashMap<String, String>();
    for (int at = 0; at + 1 < arguments.length; at += 2) {
      options.put(arguments[at].substring("--".length()), arguments[at + 1]);
    }
    return options;
  }

  private static Duration millis(Map<String, String> options, String name) {
    return Duration.ofMillis(Long.parseLong(options.get(name)));
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
