package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"svcapi/shared/telemetry"
	"svcapi/shared/wallet"
	"svcapi/test/must"
)

// Every request gets a file of the site, 304 or an error, for all headers and paths.
func FuzzSite(f *testing.F) {
	for _, path := range []string{"/docs", "/docs/", "/docs/openapi.json", "/docs/%2e%2e/template.yaml", "/docs/../x",
		"/docs/openapi.json/", "//docs", "/docs/%00"} {
		f.Add("GET", path, "gzip;q=0.5, *;q=0", `W/"x", *`)
		f.Add("POST", path, "gzip;q=NaN", "")
	}
	files, err := newFiles([]byte(small), nil, wallet.Prices{wallet.SMS: 1}, demo{})
	must.Succeed(f, err)
	var log bytes.Buffer
	s := &site{files: func() map[string]*file { return files }, log: telemetry.New(&log, telemetry.Config{})}
	f.Fuzz(func(t *testing.T, method, path, encoding, match string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, &http.Request{Method: method, URL: u,
			Header: http.Header{"Accept-Encoding": {encoding}, "If-None-Match": {match}}})
		// for the alarms of the gateway
		if counted := bytes.Contains(log.Bytes(), []byte("ClientErrors")); counted != (w.Code >= http.StatusBadRequest) {
			t.Errorf("%s %q: %d, counted: %v", method, path, w.Code, counted)
		}
		log.Reset()
		file, known := files[u.EscapedPath()]
		body := w.Body.Bytes()
		switch w.Code {
		case http.StatusOK:
			unzipped, err := gzip.NewReader(bytes.NewReader(file.gzipped()))
			must.Succeed(t, err)
			plain, err := io.ReadAll(unzipped)
			if !known || method != http.MethodGet || err != nil ||
				!bytes.Equal(body, plain) && (!bytes.Equal(body, file.gzipped()) || w.Header().Get("Content-Encoding") != "gzip") {
				t.Errorf("%s %q: %d bytes", method, path, len(body))
			}
		case http.StatusNotModified:
			if !known || len(body) > 0 {
				t.Errorf("%s %q: %d bytes", method, path, len(body))
			}
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			if known && method == http.MethodGet || !bytes.Contains(body, []byte(`"http_error"`)) {
				t.Errorf("%s %q: %s", method, path, body)
			}
		default:
			t.Errorf("%s %q: %d", method, path, w.Code)
		}
	})
}
