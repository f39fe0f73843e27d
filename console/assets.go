package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// assets are the files that pages load, with the hash by which a browser knows that it has them.
var assets = func() map[string]asset {
	all := map[string]asset{}
	for name, kind := range map[string]string{
		"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8",
		"htmx.min.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		body, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		sum := sha256.Sum256(body)
		all[name] = asset{kind, `"` + hex.EncodeToString(sum[:8]) + `"`, body}
	}
	return all
}()

type asset struct {
	kind, tag string
	body      []byte
}

func (q *request) asset() error {
	file, ok := assets[strings.TrimSpace(q.PathValue("file"))]
	if !ok {
		return missing("file")
	}
	h := q.w.Header()
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "private, no-cache") // it asks whether it has changed
	h.Set("ETag", file.tag)
	http.ServeContent(q.w, q.Request, "", time.Time{}, bytes.NewReader(file.body))
	return nil
}
