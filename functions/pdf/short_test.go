//go:build !hostile

package main

// everything is true where the long tests run, too.
const everything = false
