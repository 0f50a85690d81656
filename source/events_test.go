package source

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/event"
)

// A delivery of more events than one may hold is refused before they are made.
func TestTooManyEventsOfOneDelivery(t *testing.T) {
	b := &built{options: Options{Split: func(*event.Delivery, event.JSON) ([]event.JSON, error) {
		return make([]event.JSON, MaxEvents+1), nil
	}}}
	_, err := b.Split(&event.Delivery{Body: []byte(`{}`)})
	if err == nil || !strings.Contains(err.Error(), "holds 100,001 events, more than the 100,000") {
		t.Errorf("got %v", err)
	}
}
