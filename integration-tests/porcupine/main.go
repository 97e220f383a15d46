// Judges histories with Porcupine: the store is a register with compare-and-swap, and the work a register with a fence.
//
// Reads the events of all processes from standard input. Exits with 1 if no order of the operations explains the answers.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience is far above the time of any judgement.
const patience = 2 * time.Minute

// judge returns the verdict on the calls of a model, and how many they were.
func judge(history []porcupine.Operation, lies bool) map[string]porcupine.CheckResult {
	var calls, works []porcupine.Operation
	for _, each := range history {
		if each.Input.(Question).Operation == "work" {
			works = append(works, each)
		} else {
			calls = append(calls, each)
		}
	}
	return map[string]porcupine.CheckResult{
		fmt.Sprintf("the store, %d calls", len(calls)): porcupine.CheckOperationsTimeout(store(lies), calls, patience),
		fmt.Sprintf("the work, %d calls", len(works)):  porcupine.CheckOperationsTimeout(work, works, patience),
	}
}

func run(lines io.Reader, lies bool) error {
	history, err := operations(lines)
	if err != nil {
		return err
	}
	for what, verdict := range judge(history, lies) {
		fmt.Printf("%s: %s\n", what, verdict)
		if verdict != porcupine.Ok {
			err = fmt.Errorf("no order of the operations explains the answers")
		}
	}
	return err
}

func main() {
	lies := flag.Bool("lies", false, "a conflict or a refusal may have had an effect")
	flag.Parse()
	if err := run(os.Stdin, *lies); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
