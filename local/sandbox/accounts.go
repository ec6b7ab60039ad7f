package sandbox

// Credentials of Accounts that tests name.
const (
	ExchangeRateAPIKey     = "exchangerateapi-sandbox-key"
	OpenExchangeRatesAppID = "openexchangerates-sandbox-app-id"
	QuickSendEmail         = "account@quicksend.example"
	QuickSendAPIKey        = "quicksend-sandbox-api-key"
	TextLKToken            = "1000|textlk-sandbox-token"
	TwilioAccountSID       = "AC00000000000000000000000000000001"
	TwilioAuthToken        = "twilio-sandbox-auth-token"
)

// Accounts has the secret fields that the sandbox accepts, by vendor. AWS's keys are those of a project's own account.
var Accounts = map[string]map[string]string{
	"quicksend":         {"email": QuickSendEmail, "api_key": QuickSendAPIKey},
	"notifylk":          {"user_id": "10001", "api_key": "notifylk-sandbox-api-key"},
	"textlk":            {"api_token": TextLKToken},
	"smslenz":           {"user_id": "20002", "api_key": "smslenz-sandbox-api-key"},
	"hutch":             {"username": "hutch-sandbox-user", "password": "hutch-sandbox-password"},
	"dialog":            {"esmsqk": "dialog-sandbox-esmsqk"},
	"dialogv2":          {"username": "dialog-sandbox-user", "password": "dialog-sandbox-password"},
	"twilio":            {"account_sid": TwilioAccountSID, "auth_token": TwilioAuthToken},
	"aws":               {"access_key_id": "AKIASANDBOX000000001", "secret_access_key": "aws-sandbox-secret-access-key"},
	"ipgeolocation":     {"api_key": "ipgeolocation-sandbox-api-key"},
	"ipinfo":            {"token": "ipinfo-sandbox-token"},
	"proxycheck":        {"api_key": "proxycheck-sandbox-api-key"},
	"vpnapi":            {"api_key": "vpnapi-sandbox-api-key"},
	"maxmind":           {"account_id": "100001", "license_key": "maxmind-sandbox-license-key"},
	"ip-api":            {"api_key": "ip-api-sandbox-key"},
	"ultimatesms":       {"api_token": "2000|ultimatesms-sandbox-token"},
	"ipinfo-lite":       {"token": "ipinfo-sandbox-token"},
	"ipqualityscore":    {"api_key": "ipqualityscore-sandbox-key"},
	"ip2location":       {"api_key": "ip2location-sandbox-key"},
	"openexchangerates": {"app_id": OpenExchangeRatesAppID},
	"exchangerateapi":   {"api_key": ExchangeRateAPIKey},
}
