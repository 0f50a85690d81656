package source

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
)

// Presets returns every preset, by name. They are made anew for each call, so
// a caller may change what it gets.
func Presets() []*Preset {
	return []*Preset{
		calendly(),
		hasura(),
		httpPreset(),
		standardWebhooks(),
		stripe(),
		supabase(),
		whatsapp(),
	}
}

// PresetNamed returns the preset of a name, or nil.
func PresetNamed(name string) *Preset {
	for _, p := range Presets() {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// SampleNamed returns the sample of a name like calendly/invitee.created, or
// nil, and the preset that it belongs to.
func SampleNamed(name string) (*Sample, *Preset) {
	preset, _, _ := strings.Cut(name, "/")
	p := PresetNamed(preset)
	if p == nil {
		return nil, nil
	}
	for i := range p.Samples {
		if p.Samples[i].Name == name {
			return &p.Samples[i], p
		}
	}
	return nil, p
}

//go:embed samples
var sampleFiles embed.FS

// samples reads the samples of a preset: samples/<preset>/<name>.json (or
// .form) holds the exact body, and <name>.headers.json, where there is one, an
// object of the headers that carry a part of the event.
func samples(preset string) []Sample {
	dir := "samples/" + preset
	entries, err := sampleFiles.ReadDir(dir)
	if err != nil {
		panic("source: embedded samples: " + err.Error())
	}
	var list []Sample
	for _, entry := range entries {
		file := entry.Name()
		if strings.HasSuffix(file, ".headers.json") {
			continue
		}
		name := strings.TrimSuffix(file, path.Ext(file))
		s := Sample{Name: preset + "/" + name, Header: http.Header{}}
		if s.Body, err = sampleFiles.ReadFile(dir + "/" + file); err != nil {
			panic("source: embedded samples: " + err.Error())
		}
		if text, err := sampleFiles.ReadFile(dir + "/" + name + ".headers.json"); err == nil {
			var header map[string]string
			if err := json.Unmarshal(text, &header); err != nil {
				panic(fmt.Sprintf("source: embedded %s/%s.headers.json: %v", dir, name, err))
			}
			for k, v := range header {
				s.Header.Set(k, v)
			}
		}
		list = append(list, s)
	}
	return list
}
