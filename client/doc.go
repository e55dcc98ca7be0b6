// Package client owns what the API and its clients say to each other: the bodies of requests and
// answers, and problems. A Client sends the requests.
//
// It imports the standard library only, and knows nothing of how quotad works. The tags of its
// types are the source of the OpenAPI document.
//
// The calls stand beside their types, so that a caller has one package. The pure rooms of quotad
// that take their words from here therefore link net/http, and call nothing of it.
package client
