// A small operator on client-go: every second, the leader writes its name into a ConfigMap. docs/from-client-go.md rewrites it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		klog.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	pod := os.Getenv("POD_NAME")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "operator"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: pod},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { run(ctx, client, pod) },
			OnStoppedLeading: func() { os.Exit(0) },
			OnNewLeader:      func(leader string) { fmt.Println(leader, "leads") },
		},
	})
}

func run(ctx context.Context, client kubernetes.Interface, pod string) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := reconcile(ctx, client, pod); err != nil {
			klog.Error(err)
		}
	}, time.Second)
}

func reconcile(ctx context.Context, client kubernetes.Interface, pod string) error {
	patch := fmt.Appendf(nil, `{"data": {"reconciled-by": %q}}`, pod)
	_, err := client.CoreV1().ConfigMaps("default").Patch(ctx, "operator", types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
