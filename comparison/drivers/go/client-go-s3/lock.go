package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	kube "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a record of client-go in an object. Every write has a condition: the object's absence, or the ETag of the
// elector's last read or write, as a Lease has its resource version.
type lock struct {
	client        *s3.Client
	key, identity string
	etag          *string
}

func newLock(client *s3.Client, key, identity string) *lock {
	return &lock{client: client, key: key, identity: identity}
}

var resource = schema.GroupResource{Resource: "objects"}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	found, err := l.client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: &l.key})
	var missing *types.NoSuchKey
	if errors.As(err, &missing) {
		return nil, nil, kube.NewNotFound(resource, l.key)
	}
	if err != nil {
		return nil, nil, err
	}
	defer found.Body.Close()
	body, err := io.ReadAll(found.Body)
	if err != nil {
		return nil, nil, err
	}
	var record resourcelock.LeaderElectionRecord
	if err := json.Unmarshal(body, &record); err != nil {
		return nil, nil, err
	}
	l.etag = found.ETag
	return &record, body, nil
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.put(ctx, record, &s3.PutObjectInput{IfNoneMatch: aws.String("*")})
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.etag == nil {
		return errors.New("the object was not read; call Get or Create first")
	}
	return l.put(ctx, record, &s3.PutObjectInput{IfMatch: l.etag})
}

func (l *lock) put(ctx context.Context, record resourcelock.LeaderElectionRecord, input *s3.PutObjectInput) error {
	body, err := json.Marshal(record)
	if err != nil {
		return err
	}
	input.Bucket, input.Key, input.Body = aws.String(bucket), &l.key, bytes.NewReader(body)
	written, err := l.client.PutObject(ctx, input)
	var refusal smithy.APIError
	if errors.As(err, &refusal) && refusal.ErrorCode() == "PreconditionFailed" {
		return kube.NewConflict(resource, l.key, err)
	}
	if err != nil {
		return err
	}
	l.etag = written.ETag
	return nil
}

func (l *lock) RecordEvent(string) {}

func (l *lock) Identity() string { return l.identity }

func (l *lock) Describe() string { return fmt.Sprintf("s3://%s/%s", bucket, l.key) }
