package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// A Client sends requests to quotad. It is safe for concurrent use. An error is a *Problem where
// quotad answered with one. Numbers of features and of other free members are json.Number.
type Client struct {
	BaseURL    string       // such as https://quotad.example.com
	Key        string       // sent with each request; empty: none is
	HTTPClient *http.Client // nil: http.DefaultClient
}

// Do sends a request that has no method of its own. Every part of path is percent-encoded, and path
// holds the query. The body is in as JSON; []byte is sent as it is, and nil means no body. The answer
// is decoded into out; *[]byte takes the answer as it is, and nil means that the answer is not read.
func (c *Client) Do(ctx context.Context, method, path string, header http.Header, in, out any) (http.Header, error) {
	body, err := encode(in)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, header)
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	response, err := cmp.Or(c.HTTPClient, http.DefaultClient).Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		return nil, problemOf(response.StatusCode, raw)
	}
	if err == nil {
		err = decode(raw, out)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s answered %d: %w", method, path, response.StatusCode, err)
	}
	return response.Header, nil
}

func encode(in any) ([]byte, error) {
	if raw, ok := in.([]byte); ok || in == nil {
		return raw, nil
	}
	return json.Marshal(in)
}

func decode(raw []byte, out any) error {
	if out == nil {
		return nil
	}
	if into, ok := out.(*[]byte); ok {
		*into = raw
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(out)
}

// get reads what is at a path of the API.
func get[T any](ctx context.Context, c *Client, path string) (out T, err error) {
	_, err = c.Do(ctx, http.MethodGet, path, nil, nil, &out)
	return out, err
}

// tagged is get with the entity tag of what was read, as the header ETag has it.
func tagged[T any](ctx context.Context, c *Client, path string) (out T, etag string, err error) {
	header, err := c.Do(ctx, http.MethodGet, path, nil, nil, &out)
	return out, header.Get("ETag"), err
}

// post sends in to a path of the API.
func post[T any](ctx context.Context, c *Client, path string, in any) (out T, err error) {
	_, err = c.Do(ctx, http.MethodPost, path, nil, in, &out)
	return out, err
}

// put writes in to a path of the API.
func put[T any](ctx context.Context, c *Client, path string, in any) (out T, err error) {
	_, err = c.Do(ctx, http.MethodPut, path, nil, in, &out)
	return out, err
}

func (c *Client) remove(ctx context.Context, path string) error {
	_, err := c.Do(ctx, http.MethodDelete, path, nil, nil, nil)
	return err
}

// at is the path of these names.
func at(names ...string) string {
	var path strings.Builder
	path.WriteString("/v1")
	for _, name := range names {
		path.WriteString("/" + url.PathEscape(name))
	}
	return path.String()
}

// with is a path with parameters.
func with(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// IfMatch is the header of a request that replaces what has this entity tag. Without one, the
// request writes only what is not there yet.
func IfMatch(etag string) http.Header {
	if etag == "" {
		return http.Header{"If-None-Match": {"*"}}
	}
	return http.Header{"If-Match": {etag}}
}
