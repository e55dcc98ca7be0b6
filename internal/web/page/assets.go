package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// assets contains the files to which pages refer. The name of each file contains its hash, so that browsers may
// cache it for ever. It is safe for concurrent use.
type assets struct {
	byName map[string]string // "app.css" → "/assets/app.0123abcd.css"
	byPath map[string]*asset
}

type asset struct {
	mediaType    string
	body, zipped []byte // zipped is nil if it would not be shorter
}

var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".png": "image/png", ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}

// loadAssets reads the files and creates the files of the brand.
func loadAssets(from fs.FS, brand *Brand) (*assets, error) {
	a := &assets{byName: map[string]string{}, byPath: map[string]*asset{}}
	files, err := fs.Glob(from, "assets/*")
	if err != nil {
		return nil, err
	}
	var sheet []byte
	for _, file := range files {
		body, err := fs.ReadFile(from, file)
		if err != nil {
			return nil, err
		}
		if path.Base(file) == "app.css" {
			sheet = body
			continue
		}
		a.add(path.Base(file), body)
	}
	if brand.Logo != nil {
		a.add("logo"+brand.logoKind, brand.Logo)
	}
	// The style sheet contains the URL of the font, so it is created after the font.
	sheet = bytes.ReplaceAll(sheet, []byte("url(inter.woff2)"), []byte("url("+path.Base(a.byName["inter.woff2"])+")"))
	a.add("app.css", append(sheet, brand.css()...))
	return a, nil
}

func (a *assets) add(name string, body []byte) {
	hash := sha256.Sum256(body)
	ext := path.Ext(name)
	at := "/assets/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(hash[:6]) + ext
	file := &asset{mediaType: mediaTypes[ext], body: body}
	if zipped := compress(body, gzip.BestCompression); len(zipped) < len(body) {
		file.zipped = zipped
	}
	a.byName[name], a.byPath[at] = at, file
}

// url returns the URL of a file by its original name.
func (a *assets) url(name string) (string, error) {
	at, ok := a.byName[name]
	if !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return at, nil
}

// ServeHTTP implements http.Handler.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file := a.byPath[r.URL.Path]
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if file == nil {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	h.Set("Content-Type", file.mediaType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox") // for logos opened directly
	h.Set("Vary", "Accept-Encoding")
	body := file.body
	if file.zipped != nil && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = file.zipped
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) //nolint:gosec // a file of ours; an error means that the browser is gone
}
