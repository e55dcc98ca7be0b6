package plans

import "strings"

// maxKey is the greatest length of a key, in bytes.
const maxKey = 200

// The error texts for names and keys that ValidName, ValidKey or ValidCustomerKey rejects.
const (
	NameRule        = "must be 1 to 200 letters, digits or . _ : -"
	KeyRule         = NameRule + `, and not "." or ".."`
	CustomerKeyRule = `must be 1 to 200 bytes of printable ASCII without "/", and not "." or ".."`
)

// ErasedPrefix is the prefix of the keys of erased customers. No other key may begin with it.
const ErasedPrefix = "erased:"

// ValidKey reports whether s may be the key of a meter, plan or limit. A key is a valid name other than
// "." and "..", because clients and proxies remove these two from paths.
func ValidKey(s string) bool { return ValidName(s) && !isDots(s) }

// isDots reports whether s is "." or "..", which paths treat as a position and not as a name.
func isDots(s string) bool { return s == "." || s == ".." }

// ValidName reports whether s may be the name of an attribute or a feature, which appears in no path: 1
// to 200 ASCII letters, digits or characters of . _ : -
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

// ValidCustomerKey reports whether s may be the key of a customer: 1 to 200 bytes of printable ASCII
// (including the space) without "/", and neither "." nor "..".
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

// maxShown is the number of bytes of a client's value that an error repeats.
const maxShown = 100

// Shorten cuts a client's value to the length that an error may repeat.
func Shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}
