package hasura

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// answerRow is one row of an answer, by column.
type answerRow map[string]json.RawMessage

// document is a mutation in the making: root fields in order, each one
// statement, and the variables that they take. Values travel in variables only.
type document struct {
	fields    []field
	variables []variable
	size      int
}

type field struct {
	alias, text string
	done        func(answer)
}

type variable struct {
	name, typ string
	value     []byte
}

// answer is what a field did: how many rows it wrote, and which.
type answer struct {
	Affected  int         `json:"affected_rows"`
	Returning []answerRow `json:"returning"`
}

const frame = 200 // bytes of a request besides its fields and variables

func (d *document) variable(typ string, value []byte) string {
	name := fmt.Sprint("v", len(d.variables))
	d.variables = append(d.variables, variable{name, typ, value})
	d.size += len(value) + len(typ) + 3*len(name) + 16
	return "$" + name
}

func (d *document) field(done func(answer), format string, args ...any) {
	f := field{alias: fmt.Sprint("m", len(d.fields)), text: fmt.Sprintf(format, args...), done: done}
	d.fields = append(d.fields, f)
	d.size += len(f.text) + len(f.alias) + 2
}

// query writes the mutation.
func (d *document) query() string {
	var b strings.Builder
	b.WriteString("mutation(")
	for i, v := range d.variables {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("$" + v.name + ":" + v.typ)
	}
	b.WriteString("){")
	for i, f := range d.fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.alias + ":" + f.text)
	}
	b.WriteString("}")
	return b.String()
}

func (d *document) json() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, v := range d.variables {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + v.name + `":`)
		b.Write(v.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// bytes is how large the request will be, about.
func (d *document) bytes() int { return d.size + frame }

// send runs the mutation, in one transaction of Hasura's.
func (d *document) send(ctx context.Context, c *client) error {
	if len(d.fields) == 0 {
		return nil
	}
	data, err := c.graphql(ctx, d.query(), d.json())
	if err != nil {
		return err
	}
	for _, f := range d.fields {
		var a answer
		if err := json.Unmarshal(data[f.alias], &a); err != nil {
			return c.failed(0, "", "Hasura's answer to a mutation is not as expected: %v", err)
		}
		f.done(a)
	}
	return nil
}

// add appends another document's fields, under new names.
func (d *document) add(o *document) {
	base := len(d.variables)
	for i := range o.fields {
		f := o.fields[i]
		f.alias = fmt.Sprint("m", len(d.fields))
		f.text = renumber(f.text, base)
		d.fields = append(d.fields, f)
	}
	for i, v := range o.variables {
		v.name = fmt.Sprint("v", base+i)
		d.variables = append(d.variables, v)
	}
	d.size += o.size
}

// renumber moves the variables of a field's text, which holds nothing else with
// a dollar sign.
func renumber(text string, base int) string {
	if base == 0 {
		return text
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "$v")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		n, i := 0, 0
		for ; i < len(rest) && rest[i] >= '0' && rest[i] <= '9'; i++ {
			n = n*10 + int(rest[i]-'0')
		}
		fmt.Fprint(&b, "$v", base+n)
		text = rest[i:]
	}
}

// upsert inserts objects, and of those that are there writes the columns of one
// register where the guard holds.
func (d *document) upsert(r *relation, objects, columns string, where exp, returning bool, done func(answer)) {
	out := "affected_rows"
	if returning {
		out = "returning{" + r.keyNames() + "}"
	}
	if where == nil {
		d.field(done, "%s(objects:%s on_conflict:{constraint:%s update_columns:[]}){%s}", r.fields.insert, objects, r.constraint, out)
		return
	}
	d.field(done, "%s(objects:%s on_conflict:{constraint:%s update_columns:[%s] where:%s}){%s}",
		r.fields.insert, objects, r.constraint, columns, d.variable(r.root+"_bool_exp!", where), out)
}

// replace inserts objects, and of those that are there writes columns whatever is
// stored.
func (d *document) replace(r *relation, objects, columns string, done func(answer)) {
	d.field(done, "%s(objects:%s on_conflict:{constraint:%s update_columns:[%s]}){affected_rows}", r.fields.insert, objects, r.constraint, columns)
}

// update writes one register of a row that is there, where the guard holds.
func (d *document) update(r *relation, row *merge.Row, set []byte, guard exp, done func(answer)) {
	d.field(done, "%s(where:%s _set:%s){affected_rows}", r.fields.update,
		d.variable(r.root+"_bool_exp!", allOf(r.sameKey(row), guard)), d.variable(r.root+"_set_input!", set))
}

func (d *document) objects(r *relation, list [][]byte) string {
	return d.variable("["+r.root+"_insert_input!]!", append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']'))
}
