package main

import (
	"fmt"
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
			"read":  `"operation":"read"`,
			"write": `"operation":"write","expected":%s,"new":%s`,
			"work":  `"operation":"work","token":%s`,
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
		if err := run(strings.NewReader(each.history), each.lies); (err == nil) != each.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
