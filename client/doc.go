// Package client owns what the API and its clients say to each other: the bodies of requests and
// answers, and problems.
//
// It imports the standard library only, and knows nothing of how quotad works. The tags of its
// types are the source of the OpenAPI document.
package client
