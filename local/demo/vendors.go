package demo

import (
	"svcapi/shared/project"
)

// vendor is one row of the table of integrations: what a demo project configures, with the vendor's
// account of sandbox.Accounts. The order is the order of a kind's chain.
type vendor struct {
	kind     project.Kind
	name     string
	builtIn  bool // the service does the work itself: no endpoint
	inactive bool // configured in the projects managed and byok, but not active
	settings map[string]string
}

// smsSettings are the settings of every SMS vendor.
var smsSettings = map[string]string{"sender_id": "SVCDemo", "unit_price": "0.64"}

// table is the table of integrations. A further vendor is one row.
var table = []vendor{
	{kind: project.SMS, name: "quicksend", settings: smsSettings},
	{kind: project.SMS, name: "twilio", settings: smsSettings},
	{kind: project.SMS, name: "notifylk", inactive: true, settings: smsSettings},
	{kind: project.SMS, name: "textlk", inactive: true, settings: smsSettings},
	{kind: project.SMS, name: "ultimatesms", inactive: true, settings: smsSettings},
	{kind: project.SMS, name: "smslenz", inactive: true, settings: smsSettings},
	{kind: project.SMS, name: "hutch", inactive: true, settings: smsSettings},
	{kind: project.SMS, name: "dialog", inactive: true, settings: smsSettings},
	{kind: project.SMS, name: "dialogv2", inactive: true, settings: smsSettings},
	{kind: project.SMS, name: "aws", inactive: true, settings: smsSettings},
	{kind: project.Security, name: "ipgeolocation"},
	{kind: project.Security, name: "ipinfo"},
	{kind: project.Security, name: "proxycheck", inactive: true},
	{kind: project.Security, name: "vpnapi", inactive: true},
	{kind: project.Security, name: "maxmind", inactive: true},
	{kind: project.Security, name: "ip-api", inactive: true},
	{kind: project.Security, name: "ipqualityscore", inactive: true},
	{kind: project.Security, name: "ip2location", inactive: true},
	{kind: project.Location, name: "ip-api"},
	{kind: project.Location, name: "ipinfo"},
	{kind: project.Location, name: "ipinfo-lite", inactive: true},
	{kind: project.Location, name: "ipgeolocation", inactive: true},
	{kind: project.Location, name: "maxmind", inactive: true},
	{kind: project.Currency, name: "openexchangerates"},
	{kind: project.Currency, name: "exchangerateapi"},
	{kind: project.Currency, name: "frankfurter", inactive: true},
	{kind: project.Barcode, name: "builtin", builtIn: true},
	{kind: project.PDF, name: "builtin", builtIn: true},
}
