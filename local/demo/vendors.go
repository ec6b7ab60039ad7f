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
	inactive bool // configured in the projects managed and byok, but not active
	settings map[string]string
	secrets  map[string]string
}

// smsSettings are the settings of every SMS vendor.
var smsSettings = map[string]string{"sender_id": "SVCDemo", "unit_price": "0.64"}

// table is the table of integrations. A further vendor is one row.
var table = []vendor{
	{kind: project.SMS, name: "quicksend", settings: smsSettings,
		secrets: map[string]string{"email": sandbox.QuickSendEmail, "api_key": sandbox.QuickSendAPIKey}},
	{kind: project.SMS, name: "twilio", settings: smsSettings,
		secrets: map[string]string{"account_sid": sandbox.TwilioAccountSID, "auth_token": sandbox.TwilioAuthToken}},
	{kind: project.SMS, name: "notifylk", inactive: true, settings: smsSettings,
		secrets: map[string]string{"user_id": sandbox.NotifyUserID, "api_key": sandbox.NotifyAPIKey}},
	{kind: project.SMS, name: "textlk", inactive: true, settings: smsSettings,
		secrets: map[string]string{"api_token": sandbox.TextLKToken}},
	{kind: project.SMS, name: "ultimatesms", inactive: true, settings: smsSettings,
		secrets: map[string]string{"api_token": sandbox.UltimateSMSToken}},
	{kind: project.SMS, name: "smslenz", inactive: true, settings: smsSettings,
		secrets: map[string]string{"user_id": sandbox.SMSLenzUserID, "api_key": sandbox.SMSLenzAPIKey}},
	{kind: project.SMS, name: "hutch", inactive: true, settings: smsSettings,
		secrets: map[string]string{"username": sandbox.HutchUsername, "password": sandbox.HutchPassword}},
	{kind: project.SMS, name: "dialog", inactive: true, settings: smsSettings,
		secrets: map[string]string{"esmsqk": sandbox.DialogKey}},
	{kind: project.SMS, name: "dialogv2", inactive: true, settings: smsSettings,
		secrets: map[string]string{"username": sandbox.DialogUsername, "password": sandbox.DialogPassword}},
	{kind: project.SMS, name: "aws", inactive: true, settings: smsSettings,
		secrets: map[string]string{"access_key_id": sandbox.AWSAccessKeyID, "secret_access_key": sandbox.AWSSecretAccessKey}},
	{kind: project.Security, name: "ipgeolocation", secrets: map[string]string{"api_key": sandbox.IPGeolocationKey}},
	{kind: project.Security, name: "ipinfo", secrets: map[string]string{"token": sandbox.IPInfoToken}},
	{kind: project.Security, name: "proxycheck", inactive: true, secrets: map[string]string{"api_key": sandbox.ProxyCheckKey}},
	{kind: project.Security, name: "vpnapi", inactive: true, secrets: map[string]string{"api_key": sandbox.VPNAPIKey}},
	{kind: project.Security, name: "maxmind", inactive: true,
		secrets: map[string]string{"account_id": sandbox.MaxMindAccountID, "license_key": sandbox.MaxMindLicenseKey}},
	{kind: project.Security, name: "ip-api", inactive: true, secrets: map[string]string{"api_key": sandbox.IPAPIKey}},
	{kind: project.Security, name: "ipqualityscore", inactive: true, secrets: map[string]string{"api_key": sandbox.IPQualityScoreKey}},
	{kind: project.Security, name: "ip2location", inactive: true, secrets: map[string]string{"api_key": sandbox.IP2LocationKey}},
	{kind: project.Location, name: "ip-api", secrets: map[string]string{"api_key": sandbox.IPAPIKey}},
	{kind: project.Location, name: "ipinfo", secrets: map[string]string{"token": sandbox.IPInfoToken}},
	{kind: project.Location, name: "ipinfo-lite", inactive: true, secrets: map[string]string{"token": sandbox.IPInfoToken}},
	{kind: project.Location, name: "ipgeolocation", inactive: true, secrets: map[string]string{"api_key": sandbox.IPGeolocationKey}},
	{kind: project.Location, name: "maxmind", inactive: true,
		secrets: map[string]string{"account_id": sandbox.MaxMindAccountID, "license_key": sandbox.MaxMindLicenseKey}},
	{kind: project.Currency, name: "openexchangerates", secrets: map[string]string{"app_id": sandbox.OpenExchangeRatesAppID}},
	{kind: project.Currency, name: "exchangerateapi", secrets: map[string]string{"api_key": sandbox.ExchangeRateAPIKey}},
	{kind: project.Currency, name: "frankfurter", inactive: true},
	{kind: project.Barcode, name: "builtin", builtIn: true},
	{kind: project.PDF, name: "builtin", builtIn: true},
}
