//go:build hostile

package main

// everything is true where the long tests also run.
const everything = true
