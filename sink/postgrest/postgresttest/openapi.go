package postgresttest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// describe answers GET / with the description of the schema in OpenAPI 2.0, as
// far as tables go.
func (s *Server) describe(r *request) (*result, *apiError) {
	if s.opts.NoOpenAPI {
		return nil, failure(http.StatusNotFound, "PGRST126", "Root endpoint metadata is disabled")
	}
	definitions := map[string]any{}
	for _, t := range s.known().tables {
		if t.Schema != r.schema {
			continue
		}
		required := []string{}
		properties := map[string]any{}
		for _, c := range t.Columns {
			p := map[string]any{"format": c.Type}
			if typ := swaggerType(c.Type); typ != "" {
				p["type"] = typ
			}
			if c.MaxLength > 0 {
				p["maxLength"] = c.MaxLength
			}
			if len(c.Labels) > 0 {
				p["enum"] = c.Labels
			}
			if d, ok := defaultOf(&c); ok {
				p["default"] = d
			}
			var notes []string
			if c.Comment != "" {
				notes = append(notes, c.Comment)
			}
			if slices.Contains(t.Key, c.Name) {
				notes = append(notes, "Note:\nThis is a Primary Key.<pk/>")
			}
			if notes != nil {
				p["description"] = strings.Join(notes, "\n\n")
			}
			if c.NotNull {
				required = append(required, c.Name)
			}
			properties[c.Name] = p
		}
		definitions[t.Name] = map[string]any{"required": required, "properties": properties, "type": "object"}
	}
	body, _ := json.Marshal(map[string]any{"swagger": "2.0", "info": map[string]any{"title": "PostgREST API", "version": "12.0.3"}, "definitions": definitions})
	return &result{status: http.StatusOK, body: string(body)}, nil
}

func swaggerType(t string) string {
	switch {
	case strings.HasSuffix(t, "[]"):
		return "array"
	case t == "boolean":
		return "boolean"
	case t == "smallint", t == "integer", t == "bigint":
		return "integer"
	case t == "numeric", t == "real", t == "double precision":
		return "number"
	case t == "json", t == "jsonb":
		return ""
	}
	return "string"
}

var castSuffix = regexp.MustCompile(`::[a-z "\[\]()0-9]+$`)

// defaultOf gives a default as it is shown: of types that are text here the
// expression without its cast, of others only what is JSON.
func defaultOf(c *columnInfo) (any, bool) {
	if c.Default == "" {
		return nil, false
	}
	if swaggerType(c.Type) == "string" {
		return strings.Trim(castSuffix.ReplaceAllString(c.Default, ""), "'"), true
	}
	var v any
	if json.Unmarshal([]byte(c.Default), &v) != nil {
		return nil, false
	}
	return v, true
}
