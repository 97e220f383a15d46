// Histories: what processes asked of an object, and what they were told. Every line is one event in JSON, in Jepsen's terms.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// Event is one line of a history: a call, or the end of one.
type Event struct {
	Process int    `json:"process"`
	Call    int    `json:"call"`
	At      int64  `json:"at"`
	Type    string `json:"type"` // invoke, ok, fail (without effect), conflict, info (with or without effect)
	Question
	// Value is what a read has returned: nothing if there is no object.
	Value *string `json:"value"`
}

// Question is what a process asks for.
type Question struct {
	Object    string  `json:"object"`
	Operation string  `json:"operation"` // read, work, or a write: acquire, renew, release, write
	Expected  *string `json:"expected"`  // of a write: the value that it replaces, or nothing
	New       *string `json:"new"`       // of a write
	Token     uint64  `json:"token"`     // of work
}

func (q Question) isWrite() bool { return q.Operation != "read" && q.Operation != "work" }

// Answer is what a process was told, or "info" if it was told nothing.
type Answer struct {
	Type  string
	Value *string
}

// never is the moment at which a call ends that nobody was told of: it may have its effect at any time.
const never = math.MaxInt64

// calls reads the events of any number of processes, in any order.
//
// `lies` is for networks that answer a conflict or a refusal although the write had its effect, or will have it.
func calls(lines io.Reader, lies bool) ([]porcupine.Operation, error) {
	type id struct{ process, call int }
	open := map[id]*porcupine.Operation{}
	var events []Event
	scanner := bufio.NewScanner(lines)
	for scanner.Scan() {
		var event Event
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("%q: %w", scanner.Text(), err)
		}
		events = append(events, event)
	}
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.At - b.At) })
	var all []*porcupine.Operation
	for _, event := range events {
		which := id{event.Process, event.Call}
		if event.Type == "invoke" {
			call := porcupine.Operation{ClientId: event.Process, Input: event.Question, Call: event.At, Output: Answer{Type: "info"}, Return: never}
			open[which] = &call
			all = append(all, &call)
			continue
		}
		call := open[which]
		if call == nil {
			return nil, fmt.Errorf("process %d was answered without a call: %d", event.Process, event.Call)
		}
		if lies && call.Input.(Question).isWrite() && event.Type != "ok" {
			event.Type = "info"
		}
		call.Output = Answer{event.Type, event.Value}
		if event.Type != "info" {
			call.Return = event.At
		}
		delete(open, which)
	}
	var done []porcupine.Operation
	for _, call := range all {
		done = append(done, *call)
	}
	return done, scanner.Err()
}

// seen leaves out what says nothing: reads without an answer, and writes without an answer whose value nobody has seen. Such a write
// has had no effect before the last call.
func seen(calls []porcupine.Operation) []porcupine.Operation {
	type value struct{ object, value string }
	known := map[value]bool{}
	for _, call := range calls {
		question := call.Input.(Question)
		for _, each := range []*string{question.Expected, call.Output.(Answer).Value} {
			if each != nil {
				known[value{question.Object, *each}] = true
			}
		}
	}
	return slices.DeleteFunc(calls, func(call porcupine.Operation) bool {
		question := call.Input.(Question)
		if question.Operation == "read" {
			return call.Output.(Answer).Type != "ok"
		}
		isOpen := question.isWrite() && call.Output.(Answer).Type == "info"
		return isOpen && (question.New == nil || !known[value{question.Object, *question.New}])
	})
}
