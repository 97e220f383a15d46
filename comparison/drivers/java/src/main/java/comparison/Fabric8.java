package comparison;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.util.concurrent.CompletableFuture;

/** A candidate: fabric8's elector over a Lease of Kubernetes. comparison/README.md describes the contract. */
public final class Fabric8 implements Candidate.Election {
  private final Candidate candidate;
  private final KubernetesClient client;
  private volatile CompletableFuture<?> election;

  private Fabric8(Candidate candidate) {
    this.candidate = candidate;
    // No retries but those of the elector.
    var config = new ConfigBuilder(Config.autoConfigure(null))
        .withConnectionTimeout(candidate.requestTimeout())
        .withRequestTimeout(candidate.requestTimeout())
        .withRequestRetryBackoffLimit(0)
        .build();
    client = new KubernetesClientBuilder().withConfig(config).build();
  }

  public static void main(String[] arguments) throws Exception {
    var candidate = new Candidate(arguments);
    candidate.compete(new Fabric8(candidate));
  }

  @Override
  public void run(Work work) throws Exception {
    var config = new LeaderElectionConfigBuilder()
        .withName("comparison")
        .withLock(new LeaseLock("default", candidate.lock(), candidate.identity()))
        .withLeaseDuration(candidate.lease())
        .withRenewDeadline(candidate.renewDeadline())
        .withRetryPeriod(candidate.retryPeriod())
        .withReleaseOnCancel(true)
        .withLeaderCallbacks(new LeaderCallbacks(work::start, work::stop, leader -> {}))
        .build();
    election = client.leaderElector().withConfig(config).build().start();
    election.get();
  }

  @Override
  public void release() throws InterruptedException {
    if (election != null) {
      election.cancel(true);
    }
    // The release is sent by another thread, and nothing tells of its end.
    Thread.sleep(200);
  }
}
