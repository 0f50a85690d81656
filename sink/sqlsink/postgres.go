package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// The most that one statement takes; a batch with more is split inside its
// transaction.
const (
	maxRows  = 5000
	maxBytes = 16 << 20
)

type postgresEngine struct {
	config *pgxpool.Config
	pool   *pgxpool.Pool
	once   sync.Once
	// locks is how long a transaction waits for a lock, in milliseconds, and class
	// the first half of the advisory locks that it takes.
	locks string
	class int32
}

func openPostgres(ctx context.Context, url string, opts Options) (engine, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	config.MaxConns = int32(opts.Connections)
	config.ConnConfig.ConnectTimeout = opts.ConnectTimeout
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "hookfold"
	}
	switch opts.Pooler {
	case "":
	case "transaction":
		// No named prepared statements, and one round trip per statement: the
		// next may meet another server process.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		config.ConnConfig.StatementCacheCapacity = 0
		config.ConnConfig.DescriptionCacheCapacity = 0
	default:
		return nil, fmt.Errorf("pooler %q is not known; there is transaction", opts.Pooler)
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, err
	}
	return &postgresEngine{config: config, pool: pool, class: compile.LockClass, locks: fmt.Sprint(max(1, opts.LockTimeout.Milliseconds()))}, nil
}

func (p *postgresEngine) dialect() compile.Dialect { return compile.Postgres }

func (p *postgresEngine) transact(ctx context.Context, fn func(conn) error) error {
	// READ COMMITTED, whatever the database's default: an upsert then decides by
	// the row it has locked, and never fails for another's write.
	return p.begin(ctx, pgx.TxOptions{BeginQuery: beginWrite + "; set local lock_timeout = " + p.locks}, fn)
}

const beginWrite = "begin isolation level read committed read write"

func (p *postgresEngine) alone(ctx context.Context, fn func(conn) error) error {
	return fn(postgresAlone{postgresConn{p.pool, p.class}, p})
}

// postgresAlone sends its statement with what bounds its wait for locks, in one
// round trip that is one transaction.
type postgresAlone struct {
	postgresConn
	p *postgresEngine
}

func (c postgresAlone) exec(ctx context.Context, s compile.Statement, items []item) (int, error) {
	b := &pgx.Batch{}
	b.Queue("select set_config('lock_timeout', $1, true)", c.p.locks)
	for _, part := range split(items, maxBytes) {
		args := arrays(s.Params, part)
		for _, sql := range s.All() {
			b.Queue(sql, args...)
		}
	}
	n := 0
	answers := c.p.pool.SendBatch(ctx, b)
	for i := range b.Len() {
		tag, err := answers.Exec()
		if err != nil {
			answers.Close()
			return 0, err
		}
		if i > 0 {
			n += int(tag.RowsAffected())
		}
	}
	return n, answers.Close()
}

func (p *postgresEngine) atOnce(items []item) bool { return len(split(items, maxBytes)) == 1 }

func (p *postgresEngine) read(ctx context.Context, fn func(conn) error) error {
	return p.begin(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn)
}

func (p *postgresEngine) begin(ctx context.Context, o pgx.TxOptions, fn func(conn) error) error {
	return pgx.BeginTxFunc(ctx, p.pool, o, func(tx pgx.Tx) error { return fn(postgresConn{tx, p.class}) })
}

func (p *postgresEngine) execute(ctx context.Context, statements []string) error {
	// All or nothing, and READ WRITE whatever the database's default is.
	return pgx.BeginTxFunc(ctx, p.pool, pgx.TxOptions{BeginQuery: beginWrite}, func(tx pgx.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(ctx, s); err != nil {
				return &statementError{s, err}
			}
		}
		return nil
	})
}

func (p *postgresEngine) ping(ctx context.Context) error { return p.pool.Ping(ctx) }

func (p *postgresEngine) close() error {
	p.once.Do(p.pool.Close)
	return nil
}

type postgresConn struct {
	tx    runner
	class int32
}

// runner is a transaction, or a pool for a single statement.
type runner interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// arrays makes the parameters of a statement: for each an array of texts.
func arrays(params []compile.Param, items []item) []any {
	args := make([]any, len(params))
	for i, p := range params {
		texts := make([]string, len(items))
		column := make([]*string, len(items))
		list := p.Type.Kind == merge.TextArray && p.Live != nil && isArray(p.Live.Base)
		for j, it := range items {
			s, ok := it.value(p)
			if !ok {
				continue
			}
			if list {
				s = arrayLiteral(s)
			}
			texts[j] = s
			column[j] = &texts[j]
		}
		args[i] = column
	}
	return args
}

func (c postgresConn) exec(ctx context.Context, s compile.Statement, items []item) (int, error) {
	n := 0
	for _, part := range split(items, maxBytes) {
		args := arrays(s.Params, part)
		for _, sql := range s.All() {
			tag, err := c.tx.Exec(ctx, sql, args...)
			if err != nil {
				return n, err
			}
			n += int(tag.RowsAffected())
		}
	}
	return n, nil
}

func (c postgresConn) query(ctx context.Context, s compile.Statement, items []item, row func(int, []cell) error) error {
	base := 0
	for _, part := range split(items, maxBytes) {
		rows, err := c.tx.Query(ctx, s.SQL, arrays(s.Params, part)...)
		if err != nil {
			return err
		}
		if err := each(rows, true, func(n int, cols []cell) error { return row(base+n, cols) }); err != nil {
			return err
		}
		base += len(part)
	}
	return nil
}

func (c postgresConn) all(ctx context.Context, sql string, args []any, row func([]cell) error) error {
	rows, err := c.tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	return each(rows, false, func(_ int, cols []cell) error { return row(cols) })
}

func (c postgresConn) run(ctx context.Context, sql string) error {
	_, err := c.tx.Exec(ctx, sql)
	return err
}

func (c postgresConn) lock(ctx context.Context, locks []lock) error {
	numbers := make([]int32, len(locks))
	for i, l := range locks {
		numbers[i] = l.n
	}
	_, err := c.tx.Exec(ctx, compile.LockSQL, c.class, numbers)
	return err
}

func (c postgresConn) savepoint(ctx context.Context) error { return c.run(ctx, "savepoint hookfold") }

func (c postgresConn) release(ctx context.Context) error {
	return c.run(ctx, "release savepoint hookfold")
}

func (c postgresConn) rollback(ctx context.Context) error {
	return c.run(ctx, "rollback to savepoint hookfold")
}

func (c postgresConn) defers(ctx context.Context, later bool) error {
	if later {
		return c.run(ctx, "set constraints all deferred")
	}
	return c.run(ctx, "set constraints all immediate")
}

func (c postgresConn) hasten(ctx context.Context, tables []*sink.Table) error {
	if err := c.run(ctx, "set local lock_timeout = 50"); err != nil {
		return err
	}
	for _, t := range tables {
		if err := c.run(ctx, "lock table "+compile.QuoteTable(t.Name)+" in row exclusive mode nowait"); err != nil {
			return err
		}
	}
	return nil
}

func (c postgresConn) side(ctx context.Context, sql, table string, columns columns) (int, error) {
	n := 0
	err := sideParts(table, columns, func(args []any) error {
		tag, err := c.tx.Exec(ctx, sql, args...)
		n += int(tag.RowsAffected())
		return err
	})
	return n, err
}

func (c postgresConn) sideRows(ctx context.Context, sql, table string, columns columns, row func([]cell) error) error {
	return sideParts(table, columns, func(args []any) error { return c.all(ctx, sql, args, row) })
}

// sideParts makes the parameters of a statement on a table beside, as often as
// it takes.
func sideParts(table string, columns columns, run func(args []any) error) error {
	if columns == nil {
		return run([]any{table})
	}
	for from := 0; from < len(columns[0]); from += maxRows {
		args := []any{table}
		for _, column := range columns.part(from, min(from+maxRows, len(columns[0]))) {
			list := make([]*string, len(column))
			for i := range column {
				if column[i].ok {
					list[i] = &column[i].text
				}
			}
			args = append(args, list)
		}
		if err := run(args); err != nil {
			return err
		}
	}
	return nil
}

// each reads rows of texts; with placed, the first column is the place of the
// row's item, from 1, and a column of booleans is read as cells.
func each(rows pgx.Rows, placed bool, row func(int, []cell) error) error {
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err
		}
		n := 0
		if placed {
			at, ok := values[0].(int64)
			if !ok {
				return errors.New("a row came without its place")
			}
			n, values = int(at)-1, values[1:]
		}
		var cols []cell
		for _, v := range values {
			switch v := v.(type) {
			case nil:
				cols = append(cols, cell{})
			case string:
				cols = append(cols, cell{v, true})
			case []any:
				for _, x := range v {
					cols = append(cols, cell{fmt.Sprint(x), true})
				}
			default:
				return fmt.Errorf("a value came as %T where a text was asked for", v)
			}
		}
		if err := row(n, cols); err != nil {
			return err
		}
	}
	return rows.Err()
}

// split cuts items into parts that one statement takes, of so many bytes at most.
func split(items []item, most int) [][]item {
	var out [][]item
	start, size := 0, 0
	for i, it := range items {
		n := len(it.row.Key)
		for _, c := range it.row.Cells {
			n += len(c.Value.Text())
		}
		if i > start && (i-start >= maxRows || size+n > most) {
			out = append(out, items[start:i])
			start, size = i, 0
		}
		size += n
	}
	if start < len(items) {
		out = append(out, items[start:])
	}
	return out
}

func isArray(base string) bool { return len(base) > 2 && base[len(base)-2:] == "[]" }

// arrayLiteral writes a text[] value, which is a JSON list, as PostgreSQL reads
// arrays.
func arrayLiteral(list string) string {
	v, err := merge.ParseValue(merge.Type{Kind: merge.TextArray}, list)
	if err != nil {
		return list
	}
	b := []byte{'{'}
	for i, s := range v.List() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		for j := 0; j < len(s); j++ {
			if s[j] == '"' || s[j] == '\\' {
				b = append(b, '\\')
			}
			b = append(b, s[j])
		}
		b = append(b, '"')
	}
	return string(append(b, '}'))
}
