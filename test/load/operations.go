package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed operations.json
var operationsJSON []byte

// operation is a row of operations.json. The scripts read further fields: the request's body and the expected response.
type operation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Project string `json:"project"` // demo project; empty: no credentials
	Method  string `json:"method"`  // default POST
	Path    string `json:"path"`
	VUs     int    `json:"vus"`     // clients at once, where the operation is measured alone
	Weight  int    `json:"weight"`  // in the mix
	Charges string `json:"charges"` // the price list's name; empty: free

	// Most are the thresholds, in multiples of the hello function's time at that moment.
	Most struct {
		Median float64 `json:"median"`
		P95    float64 `json:"p95"`
	} `json:"most"`
}

func operations() ([]operation, error) {
	var list []operation
	if err := json.Unmarshal(operationsJSON, &list); err != nil {
		return nil, fmt.Errorf("operations.json: %w", err)
	}
	return list, nil
}
