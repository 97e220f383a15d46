package candidate

import (
	"context"
	"sync"
	"time"
)

// work is what a leader does. One term works at a time.
type work struct {
	log      Log
	period   time.Duration
	turn     sync.Mutex
	finished chan struct{}
}

func newWork(log Log, period time.Duration) *work {
	return &work{log: log, period: period, finished: make(chan struct{})}
}

// lead appends entries until the elector cancels the term, or until finish is called.
func (w *work) lead(ctx context.Context) {
	w.turn.Lock()
	defer w.turn.Unlock()
	ticker := time.NewTicker(w.period)
	defer ticker.Stop()
	for event := "start"; ctx.Err() == nil && !w.isFinished(); event = "work" {
		w.log.Append(event)
		select {
		case <-ctx.Done():
		case <-w.finished:
		case <-ticker.C:
		}
	}
	w.log.Append("stop")
}

// finish ends the work, and waits for its end.
func (w *work) finish() {
	close(w.finished)
	w.turn.Lock()
	defer w.turn.Unlock()
}

func (w *work) isFinished() bool {
	select {
	case <-w.finished:
		return true
	default:
		return false
	}
}
