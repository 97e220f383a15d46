// Judges histories with Porcupine: the store is a register with compare-and-swap, and the work a register with a fence.
//
// Reads the events of all processes from standard input. Exits with 1 if no order of the operations explains the answers. With
// `-picture`, prints the history as SVG.
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

// judge prints the verdicts on a history, and returns an error if one is bad.
func judge(calls []porcupine.Operation) error {
	var bad error
	for _, kind := range []struct {
		name   string
		model  porcupine.Model
		isWork bool
	}{{"the store", store, false}, {"the work", work, true}} {
		var own []porcupine.Operation
		for _, each := range calls {
			if (each.Input.(Question).Operation == "work") == kind.isWork {
				own = append(own, each)
			}
		}
		verdict := porcupine.CheckOperationsTimeout(kind.model, own, patience)
		fmt.Printf("%s, %d calls: %s\n", kind.name, len(own), verdict)
		if verdict != porcupine.Ok {
			bad = fmt.Errorf("%s: no order of the operations explains the answers", kind.name)
		}
	}
	return bad
}

func run(lines io.Reader, lies, picture bool) error {
	all, err := calls(lines, lies)
	if err != nil {
		return err
	}
	if picture {
		fmt.Print(draw(all))
		return nil
	}
	return judge(seen(all))
}

func main() {
	lies := flag.Bool("lies", false, "a conflict or a refusal may hide an effect, or come before one")
	picture := flag.Bool("picture", false, "print the history as SVG")
	flag.Parse()
	if err := run(os.Stdin, *lies, *picture); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
