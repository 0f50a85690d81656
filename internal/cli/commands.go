package cli

import "github.com/spf13/cobra"

// commands lists every command, by group, in the order in which help shows
// them.
func (a *app) commands() []*cobra.Command {
	group := func(id string, list ...*cobra.Command) []*cobra.Command {
		for _, c := range list {
			c.GroupID = id
		}
		return list
	}
	var all []*cobra.Command
	all = append(all, group("try", a.demo(), a.initial(), a.version())...)
	all = append(all, group("config", a.check(), a.prove(), a.sql(), a.migrate())...)
	all = append(all, group("run", a.serve(), a.replay(), a.send(), a.export())...)
	all = append(all, group("look", a.explain(), a.verify(), a.rebuild(), a.dead(), a.waiting(), a.lane(), a.forget())...)
	return all
}

// groups are the headings of help.
func groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: "try", Title: "Begin:"}, {ID: "config", Title: "Make it right:"}, {ID: "run", Title: "Run:"}, {ID: "look", Title: "See what became of events:"},
	}
}
