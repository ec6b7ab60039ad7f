package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed operations.json
var operationsJSON []byte

// operation is a row of operations.json: what is asked, and what the scripts and this program make of it.
type operation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Project string `json:"project"` // demo project; empty: no credentials
	Method  string `json:"method"`  // default POST
	Path    string `json:"path"`
	VUs     int    `json:"vus"`     // clients at once, where it is measured alone
	Weight  int    `json:"weight"`  // in the mix
	Slow    bool   `json:"slow"`    // in the mix it has a client of its own
	Charges string `json:"charges"` // the price list's name; empty: free

	// Most are the thresholds, in multiples of what the hello function takes at that moment.
	Most struct {
		Median float64 `json:"median"`
		P95    float64 `json:"p95"`
	} `json:"most"`

	Body   json.RawMessage `json:"body"`
	Type   string          `json:"type"`   // Content-Type of a success; default application/json
	Begins []byte          `json:"-"`      // how a body that is no JSON begins
	Expect map[string]any  `json:"expect"` // fields of the envelope by their paths
}

func operations() ([]operation, error) {
	var list []operation
	if err := json.Unmarshal(operationsJSON, &list); err != nil {
		return nil, fmt.Errorf("operations.json: %w", err)
	}
	return list, nil
}
