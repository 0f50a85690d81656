package hasura

import (
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// maxLeft is the most rows of one field that are left to the guard trigger.
const maxLeft = 2000

// leave adds rows to the mutation as they are: the guard trigger joins them.
func (w *writer) leave(rows []*merge.Row) error {
	var columns []string
	for i := range w.r.registers {
		columns = append(columns, w.r.registers[i].names(nil))
	}
	var objects [][]byte
	size := 0
	send := func() error {
		n := len(objects)
		if n == 0 {
			return nil
		}
		d := &document{}
		d.replace(w.r, d.objects(w.r, objects), strings.Join(columns, " "), func(a answer) {
			w.result.Written += a.Affected
			w.result.Unchanged += n - a.Affected
		})
		objects, size = nil, 0
		return w.push(d)
	}
	for _, r := range rows {
		o := w.r.object(r, nil, nil)
		if len(objects) == maxLeft || size+len(o)+frame > w.limit() {
			if err := send(); err != nil {
				return err
			}
		}
		objects, size = append(objects, o), size+len(o)+1
	}
	return send()
}
