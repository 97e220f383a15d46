// An operator on controller-runtime: it writes into each ConfigMap that asks for it which replica has seen it last. It works on
// the cluster of its kubeconfig, and elects at the address in LEASES. docs/any-language.md has the recipe.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const namespace = "default"

// operator reconciles ConfigMaps.
type operator struct {
	client.Client
	replica string
}

func main() {
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		ctrl.Log.Error(err, "the operator has ended")
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		LeaderElection:                true,
		LeaderElectionID:              "operator",
		LeaderElectionNamespace:       namespace,
		LeaderElectionConfig:          &rest.Config{Host: os.Getenv("LEASES")},
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics:                       server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	reconciler := &operator{manager.GetClient(), os.Getenv("POD_NAME")}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		return err
	}
	// The manager returns when leadership is lost, and this process has to end then.
	return manager.Start(ctx)
}

func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var found corev1.ConfigMap
	if err := o.Get(ctx, request.NamespacedName, &found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	asked, isAsked := found.Labels["operator.example/see"]
	if !isAsked || found.Annotations["operator.example/seen"] == asked {
		return ctrl.Result{}, nil
	}
	seen := found.DeepCopy()
	seen.Annotations = map[string]string{"operator.example/seen": asked, "operator.example/seen-by": o.replica}
	return ctrl.Result{}, o.Patch(ctx, seen, client.MergeFrom(&found))
}
