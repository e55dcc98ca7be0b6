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

// A Client sends requests to quotad. It is safe for concurrent use. If quotad answers with a problem document,
// the error is a *Problem. Numbers in features and other free-form members are json.Number.
type Client struct {
	BaseURL    string       // such as https://quotad.example.com
	Key        string       // sent with each request; empty: none is
	HTTPClient *http.Client // nil: http.DefaultClient
}

// Do sends a request that has no method of its own. path includes the query, and every part of path must be
// percent-encoded. The body is in, encoded as JSON; a []byte is sent unchanged, and nil means no body. The
// answer is decoded into out; a *[]byte receives the answer unchanged, and nil discards the answer.
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

// get sends a GET request and decodes the answer.
func get[T any](ctx context.Context, c *Client, path string) (out T, err error) {
	_, err = c.Do(ctx, http.MethodGet, path, nil, nil, &out)
	return out, err
}

// tagged is get, and also returns the entity tag of the answer as in the header ETag.
func tagged[T any](ctx context.Context, c *Client, path string) (out T, etag string, err error) {
	header, err := c.Do(ctx, http.MethodGet, path, nil, nil, &out)
	return out, header.Get("ETag"), err
}

// post sends a POST request with in as its JSON body, and decodes the answer.
func post[T any](ctx context.Context, c *Client, path string, in any) (out T, err error) {
	_, err = c.Do(ctx, http.MethodPost, path, nil, in, &out)
	return out, err
}

// put sends a PUT request with in as its JSON body, and decodes the answer.
func put[T any](ctx context.Context, c *Client, path string, in any) (out T, err error) {
	_, err = c.Do(ctx, http.MethodPut, path, nil, in, &out)
	return out, err
}

func (c *Client) remove(ctx context.Context, path string) error {
	_, err := c.Do(ctx, http.MethodDelete, path, nil, nil, nil)
	return err
}

// at returns the path that consists of these names.
func at(names ...string) string {
	var path strings.Builder
	path.WriteString("/v1")
	for _, name := range names {
		path.WriteString("/" + url.PathEscape(name))
	}
	return path.String()
}

// with returns a path with query parameters.
func with(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// IfMatch returns the header of a request that replaces the version with this entity tag. If the tag is empty,
// the request writes only what does not exist yet.
func IfMatch(etag string) http.Header {
	if etag == "" {
		return http.Header{"If-None-Match": {"*"}}
	}
	return http.Header{"If-Match": {etag}}
}
