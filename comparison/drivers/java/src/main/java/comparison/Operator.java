package comparison;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;

/**
 * An operator on fabric8: it writes into each ConfigMap that asks for it which replica has seen it last. It works on the cluster
 * of its kubeconfig, and elects at the address in LEASES. docs/any-language.md has the recipe.
 */
public final class Operator implements ResourceEventHandler<ConfigMap> {
  private static final String NAMESPACE = "default";
  // Not every API server has WebSockets: those of the tests have none.
  private final KubernetesClient cluster = new KubernetesClientBuilder()
      .withConfig(new ConfigBuilder(Config.autoConfigure(null)).withOnlyHttpWatches(true).build())
      .build();
  private final String replica = System.getenv("POD_NAME");

  public static void main(String[] arguments) throws Exception {
    var operator = new Operator();
    var address = new ConfigBuilder(Config.empty()).withMasterUrl(System.getenv("LEASES")).withRequestTimeout(5000).build();
    var leases = new KubernetesClientBuilder().withConfig(address).build();
    var election = leases.leaderElector().withConfig(new LeaderElectionConfigBuilder()
        .withName("operator")
        .withLock(new LeaseLock(NAMESPACE, "operator", operator.replica))
        .withLeaseDuration(Duration.ofSeconds(15))
        .withRenewDeadline(Duration.ofSeconds(10))
        .withRetryPeriod(Duration.ofSeconds(2))
        .withReleaseOnCancel(true)
        // Nothing of a term may outlive the term, so the process ends with it.
        .withLeaderCallbacks(new LeaderCallbacks(operator::lead, () -> Runtime.getRuntime().halt(1), leader -> {}))
        .build()).build().start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      operator.cluster.close();
      election.cancel(true);
      // The release is sent by another thread, which then ends the process.
      try {
        Thread.sleep(2000);
      } catch (InterruptedException ended) {
        Thread.currentThread().interrupt();
      }
    }));
    election.join();
  }

  private void lead() {
    // The elector renews when this returns, and an informer begins with a request.
    new Thread(() -> cluster.configMaps().inNamespace(NAMESPACE).inform(this)).start();
  }

  @Override
  public void onAdd(ConfigMap found) {
    var metadata = found.getMetadata();
    var asked = metadata.getLabels() == null ? null : metadata.getLabels().get("operator.example/see");
    var known = metadata.getAnnotations() == null ? null : metadata.getAnnotations().get("operator.example/seen");
    if (asked == null || Objects.equals(asked, known)) {
      return;
    }
    var annotations = Map.of("operator.example/seen", asked, "operator.example/seen-by", replica);
    var patch = cluster.getKubernetesSerialization().asJson(Map.of("metadata", Map.of("annotations", annotations)));
    cluster.configMaps().inNamespace(NAMESPACE).withName(metadata.getName()).patch(PatchContext.of(PatchType.JSON_MERGE), patch);
  }

  @Override
  public void onUpdate(ConfigMap before, ConfigMap found) {
    onAdd(found);
  }

  @Override
  public void onDelete(ConfigMap gone, boolean isUnknown) {
    // Nobody asks any more.
  }
}
