package demo

import "testing"

func TestStoryIsWhatItSays(t *testing.T) {
	story := Story(1)
	bySource := map[string]int{}
	for _, r := range story {
		bySource[r.Source]++
	}
	if bySource["calendly"] != 11 || bySource["shop"] != 500 || bySource["whatsapp"] < 300 {
		t.Errorf("requests by source: %v", bySource)
	}
	if got := len(Shuffle(story, 1)); got != 2*len(story) {
		t.Errorf("%d requests after doubling %d", got, len(story))
	}
}
