package serve

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/billing"
)

// Path contains the checked parameters of a route's path. A parameter that the pattern does not have is empty.
type Path struct {
	Key, Meter, Limit, ID string
	N                     int
}

// namesIn returns the names of a pattern's parameters. It panics if Path has no field for a parameter.
func namesIn(pattern string) (names []string) {
	for part := range strings.SplitSeq(pattern, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains([]string{"key", "meter", "limit", "id", "n"}, name) }) {
		panic("serve.Path lacks a parameter of " + pattern)
	}
	return names
}

// readPath reads the path parameter with a name. For an id or a number that cannot exist, the error is the same
// as for a missing resource, if the pattern determines the kind of resource.
func (c *Call) readPath(name string) (err error) {
	of := func(prefix string) bool { return strings.HasPrefix(c.route.Pattern, prefix) }
	switch {
	case name == "key" && of("/v1/customers/"):
		c.Key, err = request.CustomerInPath(c.r)
	case name == "key":
		c.Key, err = request.NameInPath(c.r, name)
	case name == "meter":
		c.Meter, err = request.NameInPath(c.r, name)
	case name == "limit":
		c.Limit, err = request.NameInPath(c.r, name)
	case name == "n":
		err = c.readNumber()
	case of("/v1/keys/"), of("/v1/webhooks/"):
		c.ID, err = request.NameInPath(c.r, name)
	default:
		c.ID, err = request.PathValue(c.r, name)
		if err == nil && of("/v1/customers/") && request.CheckID(c.ID) != "" {
			err = billing.ErrUnknownCredit
		}
	}
	return err
}

// readNumber reads the number of a plan's version, or of an invoice's line or payment. A number has one
// spelling, so 01 and +1 are not found.
func (c *Call) readNumber() error {
	text, err := request.PathValue(c.r, "n")
	if err != nil {
		return err
	}
	c.N, err = strconv.Atoi(text)
	switch {
	case err == nil && c.N >= 1 && c.N <= math.MaxInt32 && strconv.Itoa(c.N) == text:
		return nil
	case strings.HasPrefix(c.route.Pattern, "/v1/plans/"):
		return problem.Invalid("n", "must be the number of a version, 1 or more, in digits")
	case strings.Contains(c.route.Pattern, "/lines/"):
		return billing.ErrUnknownLine
	}
	return billing.ErrUnknownPayment
}
