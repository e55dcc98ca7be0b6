// Package described holds the bodies of answers against an OpenAPI document. Each schema is compiled
// once: that takes longer than all else that a test does with an answer.
//
// It is imported by tests only. It must never know a route or a type of quotad's.
package described

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const home = "https://document.invalid/openapi.json"

// A Document is an OpenAPI document of version 3.1, whose schemas are JSON Schemas of the draft of 2020.
type Document struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by their places in the document
}

// New reads a document. Its operations and answers stand in it, and only its schemas may be references.
//
// Schemas of answers are open for what later versions add. A test judges this version, so New closes them: only the members
// and values that the document names pass.
func New(raw []byte) (*Document, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	closed(document)
	d := &Document{compiler: jsonschema.NewCompiler(), schemas: make(map[string]*jsonschema.Schema)}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: isInt64})
	d.compiler.AssertFormat() // else a format is a remark
	return d, d.compiler.AddResource(home, document)
}

// Body says what is wrong with a body of JSON, as an answer of an operation. The path is that of the
// document, as /v1/plans/{key}, and the status a number or "default".
func (d *Document) Body(path, method, status, media string, body []byte) error {
	schema, err := d.schema("/paths/" + step(path) + "/" + strings.ToLower(method) + "/responses/" + step(status) + "/content/" + step(media) + "/schema")
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (d *Document) schema(at string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[at]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(home + "#" + at)
	if err != nil {
		return nil, fmt.Errorf("no schema of the document's: %w", err)
	}
	d.schemas[at] = s
	return s, nil
}

// closed closes all schemas within a value of JSON.
func closed(value any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			closed(one)
		}
	case map[string]any:
		for _, one := range v {
			closed(one)
		}
		if _, isObject := v["properties"].(map[string]any); isObject && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		if known, ok := v["x-extensible-enum"].([]any); ok {
			v["enum"] = known
			if types, ok := v["type"].([]any); ok && slices.Contains(types, "null") {
				v["enum"] = append(slices.Clone(known), nil)
			}
		}
	}
}

// step is a step of a JSON pointer in a fragment of a URL.
func step(name string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}

func isInt64(value any) error {
	number, ok := value.(json.Number)
	if !ok {
		return nil
	}
	_, err := number.Int64()
	return err
}
