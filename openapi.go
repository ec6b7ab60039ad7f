// Package svcapi holds the OpenAPI document, so that what serves and checks it has no copy of its own.
package svcapi

import _ "embed"

// OpenAPI is openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Changelog is CHANGELOG.md.
//
//go:embed CHANGELOG.md
var Changelog []byte
