// Watches the Lease of its argument in three ways of client-go, and says what it hears: `Until` and RetryWatcher, which begin at the
// version of the Lease and end at an answer 410, and an informer, which lists.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
)

const namespace = "default"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func holder(object any) string {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok || lease.Spec.HolderIdentity == nil {
		return fmt.Sprintf("%T", object)
	}
	return *lease.Spec.HolderIdentity
}

func run(ctx context.Context, name string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	leases := client.CoordinationV1().Leases(namespace)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	version := lease.ResourceVersion
	only := fields.OneTermEqualSelector("metadata.name", name).String()
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.FieldSelector = only
		return leases.Watch(ctx, options)
	}}

	go func() {
		event, err := watchtools.Until(ctx, version, watcher, func(event watch.Event) (bool, error) {
			return holder(event.Object) == "last", nil
		})
		if err != nil {
			fmt.Println("until failed:", err)
			return
		}
		fmt.Println("until", event.Type, holder(event.Object))
	}()

	retried, err := watchtools.NewRetryWatcherWithContext(ctx, version, watcher)
	if err != nil {
		return err
	}
	go func() {
		for event := range retried.ResultChan() {
			fmt.Println("retry", event.Type, holder(event.Object))
		}
		fmt.Println("retry ended")
	}()

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0*time.Second, informers.WithNamespace(namespace))
	informer := factory.Coordination().V1().Leases().Informer()
	say := func(what string) func(any) {
		return func(object any) { fmt.Println("informer", what, holder(object)) }
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    say("ADDED"),
		UpdateFunc: func(_, object any) { say("MODIFIED")(object) },
		DeleteFunc: say("DELETED"),
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the informer has not listed")
	}
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}
