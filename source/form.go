package source

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/hookfold/hookfold/event"
)

// maxFormDepth is how deep brackets nest; a name with more is a name as it is.
const maxFormDepth = 32

// parseForm reads application/x-www-form-urlencoded. Brackets nest, as most
// languages write and read them:
//
//	a[b][c]=1            {"a":{"b":{"c":"1"}}}
//	a[]=1&a[]=2          {"a":["1","2"]}
//	a[0]=x&a[1]=y        {"a":["x","y"]}    if the numbers are 0, 1, 2 … without a gap
//	a[][x]=1&a[][y]=2    {"a":[{"x":"1","y":"2"}]}    a name that comes again begins the next element
//	a=1&a=2              {"a":["1","2"]}
//
// A name whose brackets are not of this form, or that contradicts one before it
// (a=1&a[b]=2), is a name as it is: {"a":"1","a[b]":"2"}.
func parseForm(body []byte) (event.JSON, error) {
	root := &formNode{kind: formObject}
	n := 0
	for pair := range strings.SplitSeq(string(bytes.TrimSpace(body)), "&") {
		if pair == "" {
			continue
		}
		if n++; n > MaxFormFields {
			return event.JSON{}, fmt.Errorf("the form has more than %s", count(MaxFormFields, "field"))
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return event.JSON{}, fmt.Errorf("not a form: name of field %d: a %% is not followed by two hex digits", n)
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return event.JSON{}, fmt.Errorf("not a form: value of field %d: a %% is not followed by two hex digits", n)
		}
		steps := formSteps(name)
		if !root.takes(steps) {
			steps = []string{name}
		}
		root.add(steps, value)
	}
	return event.ParseJSON(root.append(nil, true))
}

// formSteps takes a name with brackets apart; a step "" appends.
func formSteps(name string) []string {
	i := strings.IndexByte(name, '[')
	if i <= 0 || !strings.HasSuffix(name, "]") {
		return []string{name}
	}
	steps := []string{name[:i]}
	for rest := name[i:]; rest != ""; {
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 || strings.IndexByte(rest[1:end], '[') >= 0 || len(steps) > maxFormDepth {
			return []string{name}
		}
		steps = append(steps, rest[1:end])
		rest = rest[end+1:]
	}
	if strings.IndexByte(steps[0], ']') >= 0 {
		return []string{name}
	}
	return steps
}

// formNode is what stands under a name of a form: its texts, an object or a list.
type formNode struct {
	kind    formKind
	texts   []string
	names   []string // of the members, in the order in which they came
	members map[string]*formNode
	items   []*formNode
}

type formKind uint8

const (
	formText formKind = iota
	formObject
	formList
)

// kindAt tells what a node has to be for the steps that follow.
func kindAt(steps []string) formKind {
	switch {
	case len(steps) == 0:
		return formText
	case steps[0] == "":
		return formList
	}
	return formObject
}

// takes tells whether steps contradict nothing that is there.
func (n *formNode) takes(steps []string) bool {
	for ; len(steps) > 0; steps = steps[1:] {
		next := n.members[steps[0]]
		if n.kind == formList {
			if next = n.open(steps[1:]); next == nil {
				return true
			}
		}
		if next == nil {
			return true
		}
		if next.kind != kindAt(steps[1:]) {
			return false
		}
		n = next
	}
	return true
}

// open returns the last element of a list if what the steps name is to become
// part of it, and not of the next.
func (n *formNode) open(steps []string) *formNode {
	if len(steps) == 0 || len(n.items) == 0 {
		return nil
	}
	last := n.items[len(n.items)-1]
	if last.kind != kindAt(steps) || last.has(steps) {
		return nil
	}
	return last
}

// has tells whether there is a text at the end of the steps.
func (n *formNode) has(steps []string) bool {
	for ; len(steps) > 0; steps = steps[1:] {
		if n.kind != formObject {
			return false // a list takes more
		}
		if n = n.members[steps[0]]; n == nil {
			return false
		}
	}
	return n.kind == formText
}

// add puts a text where the steps lead.
func (n *formNode) add(steps []string, text string) {
	for ; len(steps) > 0; steps = steps[1:] {
		var next *formNode
		made := &formNode{kind: kindAt(steps[1:])}
		if n.kind == formList {
			if next = n.open(steps[1:]); next == nil {
				next = made
				n.items = append(n.items, next)
			}
		} else if next = n.members[steps[0]]; next == nil {
			if next = made; n.members == nil {
				n.members = map[string]*formNode{}
			}
			n.names = append(n.names, steps[0])
			n.members[steps[0]] = next
		}
		n = next
	}
	n.texts = append(n.texts, text)
}

// numbered returns the members of an object in the order of their names, if
// those are 0, 1, 2 …
func (n *formNode) numbered() []*formNode {
	list := make([]*formNode, len(n.names))
	for i := range list {
		if list[i] = n.members[strconv.Itoa(i)]; list[i] == nil {
			return nil
		}
	}
	return list
}

func (n *formNode) append(out []byte, root bool) []byte {
	items := n.items
	switch n.kind {
	case formText:
		if len(n.texts) == 1 {
			return appendText(out, n.texts[0])
		}
		for i, t := range n.texts {
			out = appendText(append(out, "[,"[min(i, 1)]), t)
		}
		return append(out, ']')
	case formObject:
		if items = n.numbered(); items == nil || root {
			out = append(out, '{')
			for i, name := range n.names {
				if i > 0 {
					out = append(out, ',')
				}
				out = n.members[name].append(append(appendText(out, name), ':'), false)
			}
			return append(out, '}')
		}
	}
	for i, item := range items {
		out = item.append(append(out, "[,"[min(i, 1)]), false)
	}
	return append(out, ']')
}
