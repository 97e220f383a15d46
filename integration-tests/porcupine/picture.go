package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

const (
	width, labels, right, top, lane = 760, 92, 16, 64, 13
	style                           = "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}" +
		".title{font-size:16px;font-weight:600}.note{fill:#59636e}.paper{fill:#fff}.line{stroke:#d1d9e0}" +
		".read{fill:#8c959f}.acquire{fill:#1a7f37}.renew,.write{fill:#0969da}.release{fill:#9a6700}.work{fill:#8250df}.refused{fill:#cf222e}.open{fill-opacity:.3}" +
		"@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.note{fill:#9198a1}.paper{fill:#0d1117}.line{stroke:#3d444d}" +
		".read{fill:#6e7681}.acquire{fill:#3fb950}.renew,.write{fill:#58a6ff}.release{fill:#d29922}.work{fill:#bc8cff}.refused{fill:#ff7b72}}"
)

// draw returns a history as SVG: two lanes for each process, of its calls about the lock and of its work.
func draw(calls []porcupine.Operation) string {
	first, last := int64(math.MaxInt64), int64(0)
	var processes []int
	for _, call := range calls {
		first, last = min(first, call.Call), max(last, call.Call)
		if call.Return != never {
			last = max(last, call.Return)
		}
		if !slices.Contains(processes, call.ClientId) {
			processes = append(processes, call.ClientId)
		}
	}
	x := func(at int64) float64 {
		return labels + float64(min(at, last)-first)/float64(max(last-first, 1))*(width-labels-right)
	}
	bottom := top + 2*lane*len(processes)
	var svg strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&svg, format+"\n", arguments...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title">`, width, bottom+30, width, bottom+30)
	line(`<title id="title">A history that was judged</title>`)
	line(`<style>%s</style>`, style)
	line(`<rect class="paper" width="%d" height="%d"/>`, width, bottom+30)
	line(`<text class="title" x="16" y="24">A history that was judged</text>`)
	at := 16
	for _, each := range []struct{ kind, words string }{
		{"read", "read"}, {"acquire", "acquire"}, {"renew", "renew"}, {"release", "release"}, {"work", "fenced write"}, {"refused", "refused"}, {"work open", "without an answer"},
	} {
		line(`<rect class="%s" x="%d" y="38" width="10" height="10"/><text x="%d" y="48">%s</text>`, each.kind, at, at+15, each.words)
		at += 34 + 8*len(each.words)
	}
	for second := int64(0); second <= (last-first)/1e9; second++ {
		line(`<path class="line" d="M%.1f %dV%d"/><text class="note" x="%.1f" y="%d" text-anchor="middle">%d s</text>`, x(first+second*1e9), top, bottom, x(first+second*1e9), bottom+18, second)
	}
	for row, process := range processes {
		y := top + 2*lane*row
		line(`<path class="line" d="M16 %dH%d"/><text x="16" y="%d">process %d</text>`, y, width-right, y+lane+5, process)
		for _, call := range calls {
			if call.ClientId == process {
				line(`%s`, bar(call, x, y))
			}
		}
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// bar is one call, from its beginning to its end, or to the end of the history.
func bar(call porcupine.Operation, x func(int64) float64, y int) string {
	question, answer := call.Input.(Question), call.Output.(Answer)
	kind, words := question.Operation, store.DescribeOperation(question, answer)
	if kind == "work" {
		y, words = y+lane, work.DescribeOperation(question, answer)
	}
	if answer.Type == "fail" || answer.Type == "conflict" {
		kind = "refused"
	}
	if answer.Type == "info" {
		kind += " open"
	}
	from, until := x(call.Call), x(call.Return)
	return fmt.Sprintf(`<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`, kind, from, y+2, max(until-from, 2.5), lane-4, html.EscapeString(words))
}
