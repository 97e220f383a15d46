package comparison;

import io.kubernetes.client.extended.leaderelection.LeaderElectionConfig;
import io.kubernetes.client.extended.leaderelection.LeaderElector;
import io.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.util.Config;
import java.io.IOException;

/** A candidate: the elector of Java's official client over a Lease of Kubernetes. comparison/README.md describes the contract. */
public final class Official implements Candidate.Election {
  private final Candidate candidate;
  private final ApiClient client;
  private volatile LeaderElector elector;

  private Official(Candidate candidate) throws IOException {
    this.candidate = candidate;
    client = Config.defaultClient();
  }

  public static void main(String[] arguments) throws Exception {
    var candidate = new Candidate(arguments);
    candidate.compete(new Official(candidate));
  }

  @Override
  public void run(Work work) {
    var lock = new LeaseLock("default", candidate.lock(), candidate.identity(), client);
    elector = new LeaderElector(
        new LeaderElectionConfig(lock, candidate.lease(), candidate.renewDeadline(), candidate.retryPeriod()));
    elector.run(work::start, work::stop);
  }

  @Override
  public void release() {
    if (elector != null) {
      elector.close();
    }
  }
}
