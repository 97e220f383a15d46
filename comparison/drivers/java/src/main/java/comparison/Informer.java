package comparison;

import io.fabric8.kubernetes.api.model.coordination.v1.Lease;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;

/** An informer of fabric8 at the address in LEASES, with all its defaults. It prints who holds which Lease. */
public final class Informer implements ResourceEventHandler<Lease> {
  public static void main(String[] arguments) throws Exception {
    var address = new ConfigBuilder(Config.empty()).withMasterUrl(System.getenv("LEASES")).build();
    var leases = new KubernetesClientBuilder().withConfig(address).build().leases();
    leases.inNamespace("default").inform(new Informer());
    Thread.currentThread().join();
  }

  @Override
  public void onAdd(Lease found) {
    System.out.println(found.getMetadata().getName() + " " + found.getSpec().getHolderIdentity());
  }

  @Override
  public void onUpdate(Lease before, Lease found) {
    onAdd(found);
  }

  @Override
  public void onDelete(Lease gone, boolean isUnknown) {
    System.out.println(gone.getMetadata().getName() + " is gone");
  }
}
