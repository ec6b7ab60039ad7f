//go:build hostile

package browser

// everything is true where the long tests also run.
const everything = true
