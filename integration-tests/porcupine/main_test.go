package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// said is a history in short: "process from-until question answer". A question is "read", "write OLD NEW" or "work TOKEN".
func said(calls ...string) string {
	var lines []string
	for number, call := range calls {
		words := strings.Fields(call)
		var from, until int
		fmt.Sscanf(words[1], "%d-%d", &from, &until)
		question, answer := words[2:len(words)-1], words[len(words)-1]
		event := map[string]string{
			"read":    `"operation":"read"`,
			"acquire": `"operation":"acquire","expected":%s,"new":%s`,
			"renew":   `"operation":"renew","expected":%s,"new":%s`,
			"write":   `"operation":"write","expected":%s,"new":%s`,
			"work":    `"operation":"work","token":%s`,
		}[question[0]]
		for _, word := range question[1:] {
			event = strings.Replace(event, "%s", word, 1)
		}
		value := ""
		if question[0] == "read" {
			answer, value = "ok", `,"value":`+answer
		}
		lines = append(lines,
			fmt.Sprintf(`{"process":%s,"call":%d,"at":%d,"type":"invoke","object":"lock",%s}`, words[0], number, from, event),
			fmt.Sprintf(`{"process":%s,"call":%d,"at":%d,"type":"%s"%s}`, words[0], number, until, answer, value))
	}
	return strings.Join(lines, "\n")
}

func TestVerdicts(t *testing.T) {
	for name, each := range map[string]struct {
		history    string
		lies, good bool
	}{
		"one after another":               {said(`1 0-1 write null "a" ok`, `2 2-3 read "a"`, `2 4-5 write "a" "b" ok`, `1 6-7 write "a" "c" conflict`), false, true},
		"a read during a write":           {said(`1 0-9 write null "a" ok`, `2 1-2 read "a"`, `3 3-4 read "a"`), false, true},
		"a write that lands late":         {said(`1 0-1 write null "a" info`, `2 5-6 read null`, `2 7-8 read "a"`), false, true},
		"a conflict that was a lie":       {said(`1 0-1 write null "a" conflict`, `2 2-3 read "a"`), true, true},
		"work by growing tokens":          {said(`1 0-1 work 1 ok`, `2 2-3 work 2 ok`, `1 2-5 work 1 fail`), false, true},
		"broken: a read of the past":      {said(`1 0-1 write null "a" ok`, `1 2-3 write "a" "b" ok`, `2 4-5 read "a"`), false, false},
		"broken: two replace one version": {said(`1 0-1 write null "a" ok`, `2 2-3 write "a" "b" ok`, `3 2-3 write "a" "c" ok`), false, false},
		"broken: a read that goes back":   {said(`1 0-9 write null "a" ok`, `2 1-2 read "a"`, `3 3-4 read null`), false, false},
		"broken: a refused write lands":   {said(`1 0-1 write null "a" fail`, `2 2-3 read "a"`), false, false},
		"broken: a lost write":            {said(`1 0-1 write null "a" ok`, `2 2-3 write null "b" ok`), true, false},
		"broken: an older leader works":   {said(`1 0-1 work 2 ok`, `2 2-3 work 1 ok`), false, false},
		"broken: the leader is refused":   {said(`1 0-1 work 1 ok`, `2 2-3 work 2 fail`), false, false},
	} {
		if err := run(strings.NewReader(each.history), each.lies, false); (err == nil) != each.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// realHistory is the beginning of a contest that was carried out: processes that are killed and frozen, and whose networks lie.
const realHistory = "testdata/contest.jsonl"

func realEvents(t *testing.T) []Event {
	data, err := os.ReadFile(realHistory)
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	for line := range strings.Lines(string(data)) {
		var event Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// ask returns the event with which a call began.
func ask(events []Event, end Event) Event {
	return events[slices.IndexFunc(events, func(each Event) bool {
		return each.Type == "invoke" && each.Process == end.Process && each.Call == end.Call
	})]
}

// last is the place of the last event of a kind that ends a call of an operation.
func last(t *testing.T, events []Event, kind string, operations ...string) int {
	for place, event := range slices.Backward(events) {
		if event.Type == kind && slices.Contains(operations, ask(events, event).Operation) {
			return place
		}
	}
	t.Fatalf("the history has no %s of %v", kind, operations)
	return 0
}

func TestARealHistoryThatIsBroken(t *testing.T) {
	judged := func(events []Event) error {
		var lines strings.Builder
		for _, event := range events {
			line, _ := json.Marshal(event)
			lines.Write(append(line, '\n'))
		}
		return run(strings.NewReader(lines.String()), true, false)
	}
	if err := judged(realEvents(t)); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func([]Event) []Event{
		"a read shows what was replaced": func(events []Event) []Event {
			first := ask(events, events[slices.IndexFunc(events, func(each Event) bool { return each.Type == "ok" && ask(events, each).isWrite() })])
			events[last(t, events, "ok", "read")].Value = first.New
			return events
		},
		"a write that landed is lost": func(events []Event) []Event {
			gone := events[last(t, events[:len(events)/2], "ok", "renew")]
			return slices.DeleteFunc(events, func(each Event) bool { return each.Process == gone.Process && each.Call == gone.Call })
		},
		"a write replaces a version twice": func(events []Event) []Event {
			again := ask(events, events[last(t, events[:len(events)/2], "ok", "renew")])
			again.Process, again.Call, again.At = 0, 0, events[len(events)-1].At+1
			end := again
			end.Type, end.At, end.Question = "ok", again.At+1, Question{}
			return append(events, again, end)
		},
		"an earlier leader works": func(events []Event) []Event {
			work := ask(events, events[last(t, events, "ok", "work")])
			work.Process, work.Call, work.At, work.Token = 0, 0, events[len(events)-1].At+1, 0
			end := work
			end.Type, end.At = "ok", work.At+1
			return append(events, work, end)
		},
		"the leader's work is refused": func(events []Event) []Event {
			events[last(t, events, "ok", "work")].Type = "fail"
			return events
		},
	} {
		if judged(spoil(realEvents(t))) == nil {
			t.Errorf("not refused: %s", name)
		}
	}
}

func TestThePictureIsThatOfTheHistory(t *testing.T) {
	file, err := os.Open(realHistory)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := calls(file, false)
	if err != nil {
		t.Fatal(err)
	}
	const picture = "../../docs/history.svg"
	if os.Getenv("WRITE") != "" {
		if err := os.WriteFile(picture, []byte(draw(all)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(picture)
	if err != nil || string(kept) != draw(all) {
		t.Errorf("docs/history.svg is another picture (%v): set WRITE=1 and run this test again", err)
	}
}
