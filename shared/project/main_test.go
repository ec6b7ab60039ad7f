package project_test

import (
	"testing"

	"svcapi/test/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }
