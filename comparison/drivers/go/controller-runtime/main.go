// A candidate: a manager of controller-runtime that elects on a server of Leases of its own. The manager's own API server is
// never asked, because the manager has no controller.
package main

import (
	"context"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"leaderelection.invalid/comparison/drivers/candidate"
)

func main() {
	options := candidate.Parse()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	election, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		candidate.Fail(err)
	}
	candidate.Compete(options, func(ctx context.Context, lead func(context.Context)) error {
		manage, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
			LeaderElection:                true,
			LeaderElectionConfig:          election,
			LeaderElectionNamespace:       "default",
			LeaderElectionID:              options.Lock,
			LeaderElectionReleaseOnCancel: !options.Keep,
			LeaseDuration:                 &options.Lease,
			RenewDeadline:                 &options.Renew,
			RetryPeriod:                   &options.Retry,
			Metrics:                       server.Options{BindAddress: "0"},
		})
		if err != nil {
			return err
		}
		// What is added without a word about elections waits for leadership.
		work := manager.RunnableFunc(func(ctx context.Context) error { lead(ctx); return nil })
		if err := manage.Add(work); err != nil {
			return err
		}
		return manage.Start(ctx)
	})
}
