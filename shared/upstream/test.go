package upstream

import (
	"svcapi/shared/project"
	"svcapi/shared/testvalue"
)

// testClasses are those of the outcomes of test values with which a call fails.
var testClasses = map[testvalue.Outcome]Class{
	testvalue.Rejected: Rejected, testvalue.QuotaUsed: Rejected, testvalue.CredentialsRefused: CredentialsRefused,
	testvalue.Hang: NoResponse, testvalue.Unparseable: Unusable, testvalue.ServerError: Unusable,
}

// TestFailure returns the *Error of the vendor "test" for a value, and nil where the vendor accepts the request.
func TestFailure(v testvalue.Value) error {
	if class := testClasses[v.Outcome]; class != "" {
		return Failure(class, project.TestVendor, v.Meaning, nil)
	}
	return nil
}
