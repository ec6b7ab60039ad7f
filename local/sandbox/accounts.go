package sandbox

// The credentials that the sandbox accepts, by vendor. The AWS keys are those of a project's own account.
const (
	AWSAccessKeyID         = "AKIASANDBOX000000001"
	AWSSecretAccessKey     = "aws-sandbox-secret-access-key"
	DialogKey              = "dialog-sandbox-esmsqk"
	DialogUsername         = "dialog-sandbox-user"
	DialogPassword         = "dialog-sandbox-password"
	ExchangeRateAPIKey     = "exchangerateapi-sandbox-key"
	HutchUsername          = "hutch-sandbox-user"
	HutchPassword          = "hutch-sandbox-password"
	IP2LocationKey         = "ip2location-sandbox-key"
	IPAPIKey               = "ip-api-sandbox-key"
	IPGeolocationKey       = "ipgeolocation-sandbox-api-key"
	IPInfoToken            = "ipinfo-sandbox-token"
	IPQualityScoreKey      = "ipqualityscore-sandbox-key"
	MaxMindAccountID       = "100001"
	MaxMindLicenseKey      = "maxmind-sandbox-license-key"
	NotifyUserID           = "10001"
	NotifyAPIKey           = "notifylk-sandbox-api-key"
	OpenExchangeRatesAppID = "openexchangerates-sandbox-app-id"
	ProxyCheckKey          = "proxycheck-sandbox-api-key"
	QuickSendEmail         = "account@quicksend.example"
	QuickSendAPIKey        = "quicksend-sandbox-api-key"
	SMSLenzUserID          = "20002"
	SMSLenzAPIKey          = "smslenz-sandbox-api-key"
	TextLKToken            = "1000|textlk-sandbox-token"
	TwilioAccountSID       = "AC00000000000000000000000000000001"
	TwilioAuthToken        = "twilio-sandbox-auth-token"
	UltimateSMSToken       = "2000|ultimatesms-sandbox-token"
	VPNAPIKey              = "vpnapi-sandbox-api-key"
)

// Accounts has the secret fields that the sandbox accepts, by vendor.
var Accounts = map[string]map[string]string{
	"quicksend":         {"email": QuickSendEmail, "api_key": QuickSendAPIKey},
	"notifylk":          {"user_id": NotifyUserID, "api_key": NotifyAPIKey},
	"textlk":            {"api_token": TextLKToken},
	"smslenz":           {"user_id": SMSLenzUserID, "api_key": SMSLenzAPIKey},
	"hutch":             {"username": HutchUsername, "password": HutchPassword},
	"dialog":            {"esmsqk": DialogKey},
	"dialogv2":          {"username": DialogUsername, "password": DialogPassword},
	"twilio":            {"account_sid": TwilioAccountSID, "auth_token": TwilioAuthToken},
	"aws":               {"access_key_id": AWSAccessKeyID, "secret_access_key": AWSSecretAccessKey},
	"ipgeolocation":     {"api_key": IPGeolocationKey},
	"ipinfo":            {"token": IPInfoToken},
	"proxycheck":        {"api_key": ProxyCheckKey},
	"vpnapi":            {"api_key": VPNAPIKey},
	"maxmind":           {"account_id": MaxMindAccountID, "license_key": MaxMindLicenseKey},
	"ip-api":            {"api_key": IPAPIKey},
	"ultimatesms":       {"api_token": UltimateSMSToken},
	"ipinfo-lite":       {"token": IPInfoToken},
	"ipqualityscore":    {"api_key": IPQualityScoreKey},
	"ip2location":       {"api_key": IP2LocationKey},
	"openexchangerates": {"app_id": OpenExchangeRatesAppID},
	"exchangerateapi":   {"api_key": ExchangeRateAPIKey},
}
