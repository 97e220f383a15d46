// Package candidate runs client-go's elector as one candidate of the comparison: it keeps the contract that
// comparison/README.md describes.
package candidate

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Options are the arguments that every driver takes.
type Options struct {
	Lock, Identity, Log string
	Lease, Renew, Retry time.Duration
	Work                time.Duration
	Keep                bool
}

// Parse reads the arguments.
func Parse() Options {
	var options Options
	millis := func(name string, usage string) *int64 { return flag.Int64(name, 0, usage) }
	flag.StringVar(&options.Lock, "lock", "", "the lock's name")
	flag.StringVar(&options.Identity, "identity", "", "the candidate's identity")
	flag.StringVar(&options.Log, "log", "", "the file of the log")
	lease := millis("lease-ms", "the lease duration")
	renew := millis("renew-ms", "the renew deadline")
	retry := millis("retry-ms", "the retry period")
	work := millis("work-ms", "the time between two entries")
	flag.BoolVar(&options.Keep, "keep", false, "never release the lock")
	flag.Parse()
	options.Lease = time.Duration(*lease) * time.Millisecond
	options.Renew = time.Duration(*renew) * time.Millisecond
	options.Retry = time.Duration(*retry) * time.Millisecond
	options.Work = time.Duration(*work) * time.Millisecond
	return options
}

// RequestTimeout is the limit that resourcelock.NewFromKubeconfig sets for one request.
func (o Options) RequestTimeout() time.Duration {
	return max(time.Second, o.Renew/2)
}

// Log is the work of all candidates of an election.
type Log struct {
	file     *os.File
	identity string
}

// Open opens the log.
func (o Options) Open() (Log, error) {
	file, err := os.OpenFile(o.Log, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	return Log{file, o.Identity}, err
}

// Append writes one entry at once, without a token, because client-go gives none out. An entry that cannot be written ends the process.
func (l Log) Append(event string) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		Fail(err)
	}
	if _, err := fmt.Fprintf(l.file, "%d %s - %s\n", now.Nano(), l.identity, event); err != nil {
		Fail(err)
	}
}

// Fail ends the process with a message.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Run competes with client-go's elector until SIGTERM, or until the standard input ends.
func Run(options Options, lock resourcelock.Interface) {
	Compete(options, func(elect context.Context, lead func(context.Context)) error {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:            lock,
			LeaseDuration:   options.Lease,
			RenewDeadline:   options.Renew,
			RetryPeriod:     options.Retry,
			ReleaseOnCancel: !options.Keep,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: lead,
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			Fail(err)
		}
		elector.Run(elect)
		return nil
	})
}

// Compete elects again and again until SIGTERM, or until the standard input ends. As client-go demands of whoever sets
// ReleaseOnCancel, the work has ended before the elector is cancelled.
func Compete(options Options, elect func(ctx context.Context, lead func(context.Context)) error) {
	log, err := options.Open()
	if err != nil {
		Fail(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	ctx, cancel := context.WithCancel(context.Background())
	work := newWork(log, options.Work)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		work.finish()
		cancel()
	}()
	log.Append("ready")
	for ctx.Err() == nil {
		if err := elect(ctx, work.lead); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
