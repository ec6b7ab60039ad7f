package demo

import (
	"svcapi/local/sandbox"
	"svcapi/shared/project"
)

// vendor is one row of the table of integrations: what a demo project configures, and the account that the sandbox
// accepts. The order is the order of a kind's chain.
type vendor struct {
	kind     project.Kind
	name     string
	builtIn  bool // the service does the work itself: no endpoint
	spare    bool // configured in the projects managed and byok, but not active
	settings map[string]string
	secrets  map[string]string
}

// table is the table of integrations. A further vendor is one row.
var table = []vendor{
	{kind: project.SMS, name: "quicksend", settings: map[string]string{"sender_id": "SVCDemo"},
		secrets: map[string]string{"email": sandbox.QuickSendEmail, "api_key": sandbox.QuickSendAPIKey}},
	{kind: project.SMS, name: "twilio", settings: map[string]string{"sender_id": "SVCDemo"},
		secrets: map[string]string{"account_sid": sandbox.TwilioAccountSID, "auth_token": sandbox.TwilioAuthToken}},
	{kind: project.Barcode, name: "builtin", builtIn: true},
	{kind: project.PDF, name: "builtin", builtIn: true},
}
