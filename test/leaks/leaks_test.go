package leaks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svcapi/test/leaks"
)

func TestProve(t *testing.T) {
	if err := leaks.Prove(t.TempDir()); err != nil {
		t.Error(err)
	}
}

// Text without secrets has no finding, and a finding does not contain the secret.
func TestSearch(t *testing.T) {
	dir := t.TempDir()
	secret := "a-secret-of-a-vendor"
	for name, line := range map[string]string{
		"plain.log":  `{"payload":"{\"url\":\"https://vendor.example/a:b?c@d\",\"to\":\"basic things\"}","project":"svc_acme"}`,
		"hit.log":    "key=" + secret,
		"cut.log":    "key=" + secret[:16] + "…",
		"sub/hit.gz": "X" + secret,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, leaks.KnownFile), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := leaks.Search(dir, nil)
	if err != nil || r.Files != 4 || r.Lines != 4 || r.Secrets != 1 || len(r.Found) != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, found := range r.Found {
		if strings.Contains(found, secret[:10]) {
			t.Errorf("the finding contains the secret: %s", found)
		}
	}
}
