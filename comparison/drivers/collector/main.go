// A candidate: the extension k8s_leader_elector of the OpenTelemetry Collector, with the settings of a collector's file. The file's text
// is in COLLECTOR_CONFIG; the arguments name the Lease and its timings. The Lease has an identity that the extension makes.
package main

import (
	"context"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/k8sleaderelector"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"sigs.k8s.io/yaml"

	"leaderelection.invalid/comparison/drivers/candidate"
)

func main() {
	options := candidate.Parse()
	var file struct {
		Extensions map[string]map[string]any `json:"extensions"`
	}
	if err := yaml.UnmarshalStrict([]byte(os.Getenv("COLLECTOR_CONFIG")), &file); err != nil {
		candidate.Fail(err)
	}
	settings := file.Extensions["k8s_leader_elector"]
	settings["lease_name"] = options.Lock
	settings["lease_duration"] = options.Lease.String()
	settings["renew_deadline"] = options.Renew.String()
	settings["retry_period"] = options.Retry.String()
	candidate.Compete(options, func(ctx context.Context, lead func(context.Context)) error {
		factory := k8sleaderelector.NewFactory()
		config := factory.CreateDefaultConfig()
		if err := confmap.NewFromStringMap(settings).Unmarshal(config); err != nil {
			return err
		}
		extension, err := factory.Create(ctx, extensiontest.NewNopSettings(factory.Type()), config)
		if err != nil {
			return err
		}
		// As a receiver does, which works between the two calls.
		var stop context.CancelFunc
		done := make(chan struct{})
		start := func(context.Context) {
			var work context.Context
			work, stop = context.WithCancel(context.Background())
			done = make(chan struct{})
			go func() { defer close(done); lead(work) }()
		}
		end := func() {
			// It is called at the end of a candidacy, too.
			if stop != nil {
				stop()
				<-done
				stop = nil
			}
		}
		extension.(k8sleaderelector.LeaderElection).SetCallBackFuncs(start, end)
		if err := extension.Start(ctx, componenttest.NewNopHost()); err != nil {
			return err
		}
		<-ctx.Done()
		return extension.Shutdown(context.Background())
	})
}
