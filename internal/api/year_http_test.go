package api

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"quotad/internal/testkit"
)

// try sends a request. Headers without a value are left out.
func (y *year) try(method, path string, body any, headers ...string) reply {
	y.t.Helper()
	text := ""
	if body != nil {
		text = textOf(y, body)
	}
	r, err := http.NewRequestWithContext(testkit.Context(y.t), method, y.url+path, strings.NewReader(text))
	check(y.t, err)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := y.client.Do(r)
	check(y.t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	check(y.t, err)
	return reply{status: response.StatusCode, header: response.Header, text: string(answer)}
}

// read sends a GET and reads its answer into a value.
func (y *year) read(path string, into any) {
	y.t.Helper()
	check(y.t, json.Unmarshal([]byte(y.call(200, "GET", path, nil).text), into))
}
