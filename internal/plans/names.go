package plans

import "strings"

// maxKey is the length of the longest key, in bytes.
const maxKey = 200

// The texts about a key that ValidName, ValidKey or ValidCustomerKey refuses.
const (
	NameRule        = "must be 1 to 200 letters, digits or . _ : -"
	KeyRule         = NameRule + `, and not "." or ".."`
	CustomerKeyRule = `must be 1 to 200 bytes of printable ASCII without "/", and not "." or ".."`
)

// ErasedPrefix begins the keys of erased customers. No other key may begin with it.
const ErasedPrefix = "erased:"

// ValidKey reports whether s may be the key of a meter, plan or limit: a valid name, but for "." and "..",
// which clients and proxies take out of paths.
func ValidKey(s string) bool { return ValidName(s) && !isDots(s) }

// isDots reports whether s stands for a place in a path, and not for a name.
func isDots(s string) bool { return s == "." || s == ".." }

// ValidName reports whether s may be the name of an attribute or a feature, which stands in no path: 1 to
// 200 ASCII letters, digits or one of . _ : -
func ValidName(s string) bool {
	if s == "" || len(s) > maxKey {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}

// ValidCustomerKey reports whether s may be the key of a customer: 1 to 200 bytes of printable
// ASCII (the space included) without "/". It must not be "." or "..".
func ValidCustomerKey(s string) bool {
	if s == "" || len(s) > maxKey || isDots(s) {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '/' {
			return false
		}
	}
	return true
}

// maxShown is how many bytes of a client's value an error repeats.
const maxShown = 100

// Shorten cuts a client's value to what an error may repeat.
func Shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}
