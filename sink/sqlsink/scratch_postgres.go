package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

const (
	// copyFacts tells what `like` leaves out or shares: columns whose default takes
	// from a sequence, and whether there are policies.
	copyFacts = `select array(
        select a.attname::text from pg_catalog.pg_attribute a
        join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = c.oid and a.attidentity = '' and a.attgenerated = '' and pg_catalog.pg_get_expr(d.adbin, d.adrelid) like '%nextval(%'),
    c.relrowsecurity
from pg_catalog.pg_class c where c.oid = pg_catalog.to_regclass($1)`

	// copyReferences gives the foreign keys from one table to another, as what
	// stands behind "foreign key".
	copyReferences = `select array(select a.attname::text from pg_catalog.unnest(k.conkey) with ordinality as x (n, at)
        join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = x.n order by x.at),
    array(select a.attname::text from pg_catalog.unnest(k.confkey) with ordinality as x (n, at)
        join pg_catalog.pg_attribute a on a.attrelid = k.confrelid and a.attnum = x.n order by x.at),
    case k.confmatchtype when 'f' then ' match full' else '' end
    || case k.confupdtype when 'c' then ' on update cascade' when 'r' then ' on update restrict' when 'n' then ' on update set null' when 'd' then ' on update set default' else '' end
    || case k.confdeltype when 'c' then ' on delete cascade' when 'r' then ' on delete restrict' when 'n' then ' on delete set null' when 'd' then ' on delete set default' else '' end
    || case when k.condeferrable then ' deferrable' else '' end
    || case when k.condeferred then ' initially deferred' else '' end
from pg_catalog.pg_constraint k
where k.contype = 'f' and k.conparentid = 0 and k.conrelid = pg_catalog.to_regclass($1) and k.confrelid = pg_catalog.to_regclass($2)
order by k.conname`

	// placeOwners gives the places there are, what their comments say, and the
	// time by which these are judged.
	placeOwners = `select n.nspname::text, coalesce(pg_catalog.obj_description(n.oid, 'pg_namespace'), ''), pg_catalog.clock_timestamp()
from pg_catalog.pg_namespace n where n.nspname like 'hookfold\_prove\_%'`

	// placeMark stands in the comment of a place before the time at which it was
	// last in use, by the clock of the server.
	placeMark = "hookfold prove works here and removes it. In use at "
)

// place makes a schema of its own. Its tables are not in the write-ahead log.
func (p *postgresEngine) place(ctx context.Context, tables []copied, opts Options) (*place, error) {
	schema := placeName()
	made := &place{}
	names := map[string]bool{}
	copies := make([]string, len(tables))
	for i, t := range tables {
		name := compile.InSchema(schema, t.Name)
		for n := 2; names[name]; n++ { // one of the same name from another schema
			name = compile.InSchema(schema, fmt.Sprintf(`"%s_%d"`, strings.ReplaceAll(compile.TableName(t.Name), `"`, `""`), n))
		}
		names[name], copies[i] = true, name
		own := *t.Table
		own.Name = name
		made.tables = append(made.tables, &own)
	}
	err := pgx.BeginTxFunc(ctx, p.pool, pgx.TxOptions{BeginQuery: beginWrite}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "create schema "+compile.Quote(schema)); err != nil {
			return mayNot(err)
		}
		if err := beat(ctx, tx, schema); err != nil {
			return err
		}
		for i, t := range tables {
			if t.live.Exists {
				if err := made.like(ctx, tx, t, copies[i]); err != nil {
					return err
				}
			}
		}
		return made.foreignKeys(ctx, tx, tables, copies)
	})
	if err != nil {
		return nil, err
	}
	made.beat = func(ctx context.Context) error { return beat(ctx, p.pool, schema) }
	made.remove = func(ctx context.Context) error {
		_, err := p.pool.Exec(ctx, "drop schema if exists "+compile.Quote(schema)+" cascade")
		return err
	}
	config := p.config.Copy()
	if opts.Pooler == "" { // what is lost with the power is of no worth
		config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}
	if opts.Rewrite != nil {
		config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "select pg_catalog.set_config('search_path', $1 || ', ' || pg_catalog.current_setting('search_path'), false)", compile.Quote(schema))
			return err
		}
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, errors.Join(err, made.remove(ctx))
	}
	e := &postgresEngine{config: config, pool: pool, locks: p.locks, class: ownLocks(schema)}
	made.engine, made.empty = e, e.empty
	return made, nil
}

// ownLocks is a class of advisory locks for a place, so that nobody who writes the
// tables themselves waits for it.
func ownLocks(schema string) int32 {
	h := fnv.New32a()
	h.Write([]byte(schema))
	return int32(h.Sum32())
}

// mayNot tells what to do where no schema may be made.
func mayNot(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		return &sink.Error{Action: sink.Reject, Code: pg.Code, Err: err,
			Message: "a trial needs a schema of its own, and this user may not make one: grant create on database …, or name another database for it (--sink URL)"}
	}
	return err
}

// like copies a table as it lives.
func (p *place) like(ctx context.Context, tx pgx.Tx, t copied, name string) error {
	var counted []string
	var policies bool
	if err := tx.QueryRow(ctx, copyFacts, compile.PostgresName(t.Name)).Scan(&counted, &policies); err != nil {
		return err
	}
	table := compile.QuoteTable(name)
	statements := []string{"create unlogged table " + table + " (like " + compile.QuoteTable(t.Name) + " including all)"}
	for i, column := range counted { // a number that is taken here is not taken there
		schema := compile.SplitTable(name)[0]
		sequence := compile.Quote(schema) + "." + compile.Quote(fmt.Sprintf("hookfold_%s_%d", compile.TableName(name), i))
		statements = append(statements, "create sequence "+sequence,
			fmt.Sprintf("alter table %s alter column %s set default nextval(%s)", table, compile.Quote(column), compile.Literal(sequence)))
	}
	for _, s := range statements {
		if _, err := tx.Exec(ctx, s); err != nil {
			return &statementError{s, err}
		}
	}
	if slices.ContainsFunc(t.live.Triggers, func(g sink.Trigger) bool { return !compile.IsGuard(g.Name) }) {
		p.notes = append(p.notes, fmt.Sprintf("the triggers of %s do not run", t.Name))
	}
	if policies {
		p.notes = append(p.notes, fmt.Sprintf("the row-level security of %s does not hold", t.Name))
	}
	return nil
}

// foreignKeys copies those between the tables.
func (p *place) foreignKeys(ctx context.Context, tx pgx.Tx, tables []copied, copies []string) error {
	for i, from := range tables {
		for j, to := range tables {
			if !from.live.Exists || !to.live.Exists {
				continue
			}
			rows, err := tx.Query(ctx, copyReferences, compile.PostgresName(from.Name), compile.PostgresName(to.Name))
			if err != nil {
				return err
			}
			type key struct {
				Columns, To []string
				Rest        string
			}
			keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
			if err != nil {
				return err
			}
			for _, k := range keys {
				s := fmt.Sprintf("alter table %s add foreign key (%s) references %s (%s)%s",
					compile.QuoteTable(copies[i]), quoteAll(k.Columns), compile.QuoteTable(copies[j]), quoteAll(k.To), k.Rest)
				if _, err := tx.Exec(ctx, s); err != nil {
					return &statementError{s, err}
				}
			}
		}
		if out := from.outside(tables); len(out) > 0 {
			p.notes = append(p.notes, fmt.Sprintf("the foreign keys of %s to %s do not hold: Hookfold does not write there", from.Name, strings.Join(out, ", ")))
		}
	}
	return nil
}

func quoteAll(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = compile.Quote(n)
	}
	return strings.Join(out, ", ")
}

// beat marks a place as being in use, by the server's clock.
func beat(ctx context.Context, on runner, schema string) error {
	rows, err := on.Query(ctx, "select pg_catalog.clock_timestamp()")
	if err != nil {
		return err
	}
	now, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
	if err != nil {
		return err
	}
	_, err = on.Exec(ctx, "comment on schema "+compile.Quote(schema)+" is "+compile.Literal(placeMark+now.UTC().Format(time.RFC3339)))
	return err
}

// empty removes rows, table by table, or all at once where foreign keys forbid
// that order.
func (p *postgresEngine) empty(ctx context.Context, tables []string) error {
	statements, names := make([]string, len(tables)), make([]string, len(tables))
	for i, t := range tables {
		names[i] = compile.QuoteTable(t)
		statements[i] = "delete from " + names[i]
	}
	err := p.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { // one round trip, one transaction
		_, err := c.Conn().PgConn().Exec(ctx, strings.Join(statements, "; ")).ReadAll()
		return err
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23503" {
		_, err = p.pool.Exec(ctx, "truncate "+strings.Join(names, ", "))
	}
	return err
}

// sweep removes the schemas that nobody marks any more.
func (p *postgresEngine) sweep(ctx context.Context) (int, error) {
	rows, err := p.pool.Query(ctx, placeOwners)
	if err != nil {
		return 0, err
	}
	type owner struct {
		Schema, Comment string
		Now             time.Time
	}
	owners, err := pgx.CollectRows(rows, pgx.RowToStructByPos[owner])
	if err != nil {
		return 0, err
	}
	n := 0
	for _, o := range owners {
		_, at, ours := strings.Cut(o.Comment, placeMark)
		last, err := time.Parse(time.RFC3339, at)
		if !ours || err != nil || o.Now.Sub(last) < deadAfter {
			continue
		}
		_, err = p.pool.Exec(ctx, "drop schema if exists "+compile.Quote(o.Schema)+" cascade")
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "42501" { // another user's, who sweeps too
			continue
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
