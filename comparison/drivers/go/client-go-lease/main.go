// A candidate: client-go's elector over a Lease of Kubernetes.
package main

import (
	"flag"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"leaderelection.invalid/comparison/drivers/candidate"
)

func main() {
	json := flag.Bool("json", false, "speak JSON, for an API server that speaks no protobuf")
	options := candidate.Parse()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		candidate.Fail(err)
	}
	if *json {
		config.ContentType = "application/json"
	}
	holder := resourcelock.ResourceLockConfig{Identity: options.Identity}
	lock, err := resourcelock.NewFromKubeconfig(
		resourcelock.LeasesResourceLock, "default", options.Lock, holder, config, options.Renew)
	if err != nil {
		candidate.Fail(err)
	}
	candidate.Run(options, lock)
}
