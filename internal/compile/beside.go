package compile

import (
	"fmt"

	"github.com/hookfold/hookfold/sink"
)

// BesideStatements are what a sink runs for a table whose versions live in
// hookfold_versions, in this order, around the statements for the rows: first
// Claim and Hold lock what the decision reads, in statements of their own.
type BesideStatements struct {
	// Claim makes the entries of keys that have none. Its parameters are the
	// table and the keys (on SQLite one key).
	Claim string
	// Hold locks the entries and reads them: key, versions. The same parameters.
	Hold string
	// Save stores versions: table, keys, versions as JSON objects by column.
	Save string
	// Join joins rows into rows that are there; its stored versions are those
	// that Hold read.
	Join Statement
	// Scopes and Firsts are the versions that rows of the table itself have.
	Scopes, Firsts []Param
}

func compileBeside(d dialect, t *sink.Table, r *relation) *BesideStatements {
	b := &BesideStatements{Join: r.update(d)}
	b.Claim, b.Hold, b.Save = d.versions(quoteTable(d, VersionsTable(t.Name)))
	for _, f := range r.scopes {
		b.Scopes = append(b.Scopes, f.Param)
	}
	for _, f := range r.firsts {
		b.Firsts = append(b.Firsts, f.Param)
	}
	return b
}

func (postgres) versions(table string) (claim, hold, save string) {
	return fmt.Sprintf("insert into %s (table_name, key) select $1, k from unnest($2::text[]) as k on conflict (table_name, key) do nothing", table),
		fmt.Sprintf("select key, versions::text from %s where table_name = $1 and key = any($2::text[]) order by key collate \"C\" for update", table),
		fmt.Sprintf("update %s as t set versions = v.versions::jsonb from unnest($2::text[], $3::text[]) as v (key, versions) where t.table_name = $1 and t.key = v.key", table)
}

func (postgres) readVersions(table string) (all, byKey string) {
	all = fmt.Sprintf("select key, versions::text from %s where table_name = $1", table)
	return all, all + " and key = any($2::text[])"
}

func (sqlite) readVersions(table string) (all, byKey string) {
	all = fmt.Sprintf("select key, versions from %s where table_name = ?1", table)
	return all, all + " and key = ?2"
}

func (sqlite) versions(table string) (claim, hold, save string) {
	return fmt.Sprintf("insert into %s (table_name, key) values (?1, ?2) on conflict (table_name, key) do nothing", table),
		fmt.Sprintf("select key, versions from %s where table_name = ?1 and key = ?2", table),
		fmt.Sprintf("update %s set versions = ?3 where table_name = ?1 and key = ?2", table)
}
