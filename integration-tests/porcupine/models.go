package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// store is a register with compare-and-swap for each object. Its state is the value, or nothing.
var store = porcupine.Model{
	Partition: byObject,
	Init:      func() any { return (*string)(nil) },
	Equal:     func(a, b any) bool { return same(a.(*string), b.(*string)) },
	Step: func(state, input, output any) (bool, any) {
		value, call, answer := state.(*string), input.(Question), output.(Answer)
		if call.Operation == "read" {
			return same(value, answer.Value), value
		}
		holds := same(value, call.Expected)
		switch answer.Type {
		case "ok":
			return holds, call.New
		case "conflict":
			return !holds, value
		case "info":
			// A write without an effect is one that comes after all others.
			if holds {
				return true, call.New
			}
			return true, value
		default:
			return true, value
		}
	},
	DescribeOperation: func(input, output any) string {
		call, answer := input.(Question), output.(Answer)
		if call.Operation == "read" {
			return fmt.Sprintf("read: %s", shown(answer.Value))
		}
		return fmt.Sprintf("%s: %s → %s: %s", call.Operation, shown(call.Expected), shown(call.New), answer.Type)
	},
}

// work is a resource that refuses smaller fencing tokens. Its state is the largest token so far.
var work = porcupine.Model{
	Partition: byObject,
	Init:      func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		largest, call, answer := state.(uint64), input.(Question), output.(Answer)
		accepted := max(largest, call.Token)
		switch answer.Type {
		case "ok":
			return call.Token >= largest, accepted
		case "fail":
			return call.Token < largest, largest
		default:
			return true, accepted
		}
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("token %d: %s", input.(Question).Token, output.(Answer).Type)
	},
}

func byObject(history []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	place := map[string]int{}
	for _, call := range history {
		object := call.Input.(Question).Object
		if _, known := place[object]; !known {
			place[object] = len(parts)
			parts = append(parts, nil)
		}
		parts[place[object]] = append(parts[place[object]], call)
	}
	return parts
}

func same(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func shown(value *string) string {
	if value == nil {
		return "∅"
	}
	return *value
}
