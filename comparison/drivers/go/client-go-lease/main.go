// A candidate: client-go's elector over a Lease of Kubernetes.
package main

import (
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"leaderelection.invalid/comparison/drivers/candidate"
)

func main() {
	options := candidate.Parse()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		candidate.Fail(err)
	}
	holder := resourcelock.ResourceLockConfig{Identity: options.Identity}
	lock, err := resourcelock.NewFromKubeconfig(
		resourcelock.LeasesResourceLock, "default", options.Lock, holder, config, options.Renew)
	if err != nil {
		candidate.Fail(err)
	}
	candidate.Run(options, lock)
}
