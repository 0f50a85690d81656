package event

// Memo keeps what is made of a delivery as a whole while its events are read, so
// that a delivery of many events has it made once, not once per event. A nil
// Memo keeps nothing. It is not safe for use from several goroutines at once.
type Memo struct{ kept map[any]any }

// Remember returns what make made when it was first asked for under key. The
// key is comparable, and of a type of its caller's own.
func (m *Memo) Remember(key any, make func() any) any {
	if m == nil {
		return make()
	}
	if v, ok := m.kept[key]; ok {
		return v
	}
	v := make()
	if m.kept == nil {
		m.kept = map[any]any{}
	}
	m.kept[key] = v
	return v
}
