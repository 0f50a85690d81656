package mapping

import (
	"net/http"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/source"
)

// maxAnswer is the most bytes of an answer to a handshake.
const maxAnswer = 16 << 10

// handshakeHook answers a request with what an expression gives: a text as it is,
// an object or a list as JSON. A request that the expression gives nothing for,
// or cannot read, is no handshake.
func handshakeHook(e *Expr, cfg *config.Source) func(*source.Request) (*source.Answer, bool) {
	return func(r *source.Request) (*source.Answer, bool) {
		if r.Method != http.MethodGet && r.Method != http.MethodPost {
			return nil, false
		}
		d := &event.Delivery{Source: cfg.Text, Query: r.Query, Header: r.Header, Body: r.Body}
		in := &expr.Input{Delivery: d, Zone: cfg.Zone, ReadBody: bodyReader(cfg)}
		val, err := e.Eval(in)
		if err != nil || isNothing(val) {
			return nil, false
		}
		text, kind, err := answerText(val)
		if err != nil || len(text) > maxAnswer {
			return nil, false
		}
		return &source.Answer{Status: http.StatusOK, ContentType: kind, Body: []byte(text)}, true
	}
}

func answerText(val ref.Val) (text, kind string, err error) {
	switch val.(type) {
	case types.Null, types.String, types.Bytes:
	case traits.Mapper, traits.Lister:
		text, err = encodeJSON(val)
		return text, "application/json", err
	}
	text, err = expr.Text(val)
	return text, "text/plain; charset=utf-8", err
}
