// A candidate: client-go's elector over an object in S3.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"leaderelection.invalid/comparison/drivers/candidate"
)

const bucket = "bucket"

func main() {
	options := candidate.Parse()
	// The elector's own retries are the only ones, as with client-go's client for Kubernetes.
	settings, err := config.LoadDefaultConfig(context.Background(),
		config.WithRegion("us-east-1"),
		config.WithRetryMaxAttempts(1),
		config.WithHTTPClient(http.NewBuildableClient().WithTimeout(options.RequestTimeout())))
	if err != nil {
		candidate.Fail(err)
	}
	endpoint := os.Getenv("COMPARISON_S3")
	client := s3.NewFromConfig(settings, func(o *s3.Options) {
		o.BaseEndpoint = &endpoint
		o.UsePathStyle = true
	})
	candidate.Run(options, newLock(client, options.Lock, options.Identity))
}
