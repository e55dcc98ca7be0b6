package main

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"quotad/internal/testkit/pgtest"
)

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	pgtest.Main(m)
}
