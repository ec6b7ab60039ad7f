package leaks

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svcapi/test/must"
)

// TestProve plants every form of invented secrets, and finds each of them.
func TestProve(t *testing.T) {
	const vendor, client = "made/up+vendor key", "svcs_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
	planted := []string{
		`{"error":"` + client + `"}`, client[:len(client)*4/5], "for " +
			base64.StdEncoding.EncodeToString([]byte("id:"+client)),
		"for " + base64.StdEncoding.EncodeToString([]byte("id:"+vendor)), url.QueryEscape(vendor), url.PathEscape(vendor),
		"https://user:made-up@vendor.example/", "authorization: Bearer 0123456789abcdef0123",
		"x-api-key: svc_made-up_aaaaaaaa", Private,
	}
	for _, f := range forms(vendor) {
		planted = append(planted, "before "+string(f.text)+" behind")
	}
	dir := t.TempDir()
	for i, line := range planted {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.log", i)),
			[]byte("a line\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := Search(dir, []string{vendor}); err != nil || len(r.Found) != len(planted) {
		t.Errorf("found %d of %d planted secrets: %v, %v", len(r.Found), len(planted), r.Found, err)
	}
}

// Text without secrets has no finding, and a finding does not contain the secret.
func TestSearch(t *testing.T) {
	dir := t.TempDir()
	secret := "a-secret-of-a-vendor"
	for name, line := range map[string]string{
		"plain.log": `{"payload":"{\"url\":\"https://vendor.example/a:b?c@d\",\"to\":\"basic things\"}",` +
			`"project":"svc_acme"}`,
		"hit.log":    "key=" + secret,
		"cut.log":    "key=" + secret[:16] + "…",
		"sub/hit.gz": "X" + secret,
	} {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Succeed(t, os.WriteFile(path, []byte(line), 0o600))
	}
	must.Succeed(t, os.WriteFile(filepath.Join(dir, KnownFile), []byte(secret+"\n"), 0o600))
	r, err := Search(dir, nil)
	if err != nil || r.Files != 4 || r.Lines != 4 || r.Secrets != 1 || len(r.Found) != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, found := range r.Found {
		if strings.Contains(found, secret[:10]) {
			t.Errorf("the finding contains the secret: %s", found)
		}
	}
}
