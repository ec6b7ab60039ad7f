//go:build hostile

package pdftest

// Everything is true where the long tests also run.
const Everything = true
