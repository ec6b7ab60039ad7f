package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"svcapi/shared/secret"
	"svcapi/shared/upstream"
)

// maxSecretFile bounds what is read as secrets: Secrets Manager takes no more.
const maxSecretFile = 64 << 10

// readSecrets reads a vendor's secret fields over those that are stored: from a
// file, from standard input ("-"), or field by field from a terminal, where it
// asks when it is told to and when a required field is missing. A field that is
// not given stays as stored; one given empty in a file is removed. No value is
// ever an argument, or in an error.
func (a *app) readSecrets(ctx context.Context, spec upstream.Spec, stored secret.Values, file string, ask bool) (fields secret.Values, changed bool, err error) {
	var given map[string]string
	switch {
	case file != "":
		given, err = a.readSecretFile(file)
	case a.hidden != nil && (ask || len(missing(spec.Secrets, stored)) > 0):
		given, err = a.askSecrets(ctx, spec, stored)
	}
	if err != nil {
		return nil, false, err
	}
	fields = maps.Clone(stored)
	if fields == nil {
		fields = secret.Values{}
	}
	for name, value := range given {
		if !slices.ContainsFunc(spec.Secrets, func(f upstream.Field) bool { return f.Name == name }) {
			return nil, false, &usageError{fmt.Sprintf("%s has no secret field %q; it has %s", spec.Title, name, names(spec.Secrets))}
		}
		if value == "" {
			delete(fields, name)
		} else {
			fields[name] = value
		}
	}
	return fields, !maps.Equal(fields, stored), nil
}

func (a *app) readSecretFile(file string) (map[string]string, error) {
	from, what := a.in, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, &usageError{err.Error()}
		}
		defer func() { _ = f.Close() }()
		from, what = f, file
	}
	content, err := io.ReadAll(io.LimitReader(from, maxSecretFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	var given map[string]string
	if len(content) > maxSecretFile || json.Unmarshal(content, &given) != nil || given == nil {
		return nil, &usageError{what + ` must be a JSON object of texts, such as {"api_key": "..."}`}
	}
	return given, nil
}

func (a *app) askSecrets(ctx context.Context, spec upstream.Spec, stored secret.Values) (map[string]string, error) {
	given := map[string]string{}
	for _, f := range spec.Secrets {
		keep := "Enter: none"
		if stored[f.Name] != "" {
			keep = "Enter: as stored"
		} else if f.Required {
			keep = "required"
		}
		fmt.Fprintf(a.errs, "%s %s (%s; %s): ", spec.Title, f.Name, f.Description, keep)
		value, err := a.hidden(ctx)
		fmt.Fprintln(a.errs)
		if err != nil {
			return nil, err
		}
		if value != "" {
			given[f.Name] = value
		}
	}
	return given, nil
}

func names(fields []upstream.Field) string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.Name
	}
	return strings.Join(list, ", ")
}
