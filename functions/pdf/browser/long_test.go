//go:build hostile

package browser

// everything is true where the long tests run, too.
const everything = true
