package merge

import (
	"maps"
	"slices"
)

// Links are the links between identities of one table. They only grow.
type Links map[Link]bool

// Chains are the components that links make of identities, and the key of each.
type Chains struct {
	links Links
	root  map[string]string
	// members holds the identities of a chain by its key, sorted, and succeeded
	// those that another took the place of.
	members   map[string][]string
	succeeded map[string]bool
}

// NewChains finds the components of links. A component's key is its identity
// without a predecessor; if there are several (chains that meet) or none (a
// ring), the smallest by bytes. It does not depend on the order of the links.
func NewChains(links Links) *Chains {
	c := &Chains{links: links, root: map[string]string{}, members: map[string][]string{}, succeeded: map[string]bool{}}
	parent := map[string]string{}
	var find func(string) string
	find = func(x string) string {
		p, ok := parent[x]
		if !ok {
			parent[x] = x
			return x
		}
		if p == x {
			return x
		}
		parent[x] = find(p)
		return parent[x]
	}
	followed := map[string]bool{} // identities that have a predecessor
	for l := range links {
		if l.Old == l.New {
			continue
		}
		parent[find(l.Old)] = find(l.New)
		followed[l.New], c.succeeded[l.Old] = true, true
	}
	members := map[string][]string{}
	for x := range parent {
		r := find(x)
		members[r] = append(members[r], x)
	}
	for _, list := range members {
		slices.Sort(list)
		key := list[0]
		if i := slices.IndexFunc(list, func(x string) bool { return !followed[x] }); i >= 0 {
			key = list[i]
		}
		c.members[key] = list
		for _, x := range list {
			c.root[x] = key
		}
	}
	return c
}

// Root returns the key of the chain that an identity belongs to: itself if
// nothing links it.
func (c *Chains) Root(identity string) string {
	if r, ok := c.root[identity]; ok {
		return r
	}
	return identity
}

// Members returns the identities of the chain with a key, sorted. The caller
// must not change them.
func (c *Chains) Members(root string) []string {
	if list, ok := c.members[root]; ok {
		return list
	}
	return []string{root}
}

// Succeeded tells whether another identity took the place of this one.
func (c *Chains) Succeeded(identity string) bool { return c.succeeded[identity] }

// Line tells whether the chain with a key is a line: no identity has two
// successors or two predecessors, and it is no ring.
func (c *Chains) Line(root string) bool {
	after, before := map[string]int{}, map[string]int{}
	for l := range c.links {
		if l.Old != l.New && c.Root(l.Old) == root {
			after[l.Old]++
			before[l.New]++
		}
	}
	most := func(m map[string]int) int { return slices.Max(append(slices.Collect(maps.Values(m)), 0)) }
	return most(after) <= 1 && most(before) <= 1 && before[root] == 0
}
