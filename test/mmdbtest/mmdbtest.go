// Package mmdbtest writes small MaxMind databases for tests, in the format of the vendor's databases.
package mmdbtest

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"go.yaml.in/yaml/v3"
	"go4.org/netipx"

	"svcapi/test/must"
)

//go:embed databases.yaml
var databases []byte

// common are the databases that are written where none is named.
var common = []string{"GeoLite2-City.mmdb", "GeoLite2-ASN.mmdb", "GeoIP2-Anonymous-IP.mmdb"}

// typed returns a value of databases.yaml in the type that the vendor's databases give it.
func typed(value any) mmdbtype.DataType {
	switch v := value.(type) {
	case string:
		return mmdbtype.String(v)
	case bool:
		return mmdbtype.Bool(v)
	case int:
		return mmdbtype.Uint32(v)
	case float64:
		return mmdbtype.Float64(v)
	}
	record := mmdbtype.Map{}
	for name, member := range value.(map[string]any) {
		record[mmdbtype.String(name)] = typed(member)
	}
	return record
}

// Some writes the named databases into a new folder, the common ones where none is named, and returns the folder.
func Some(t testing.TB, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	must.Succeed(t, Write(dir, names...))
	return dir
}

// Write writes the named databases into a folder, the common ones where none is named.
func Write(dir string, names ...string) error {
	if len(names) == 0 {
		names = common
	}
	files := map[string]map[string]map[string]any{}
	if err := yaml.Unmarshal(databases, &files); err != nil {
		return err
	}
	for _, name := range names {
		tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: name, RecordSize: 24})
		if err != nil {
			return err
		}
		for network, record := range files[name] {
			if err := tree.Insert(netipx.PrefixIPNet(netip.MustParsePrefix(network)), typed(record)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		_, err = tree.WriteTo(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
