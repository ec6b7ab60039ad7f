package main

import (
	"maps"
	"slices"
	"strings"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

// Messages about the fields of other gateways.
const (
	notSupported = "is not supported: remove it"
	noAlias      = "is not supported: remove it; sender_id names a sender of the integration's list"
)

// refusedFields are the fields of other gateways whose meaning a send must not ignore, in lower case without hyphens
// and underscores (docs/decisions/sms.md#refused-fields). docs/sms.md lists the names and the gateways.
var refusedFields = refusals(map[string]string{
	notSupported: `
		broadcastat date datetime datetosend deferred delay delayuntil deliverat deliveryat deliverydate deliverytime
		deliverytimewindow schedule scheduleat
		scheduled scheduledat scheduledate scheduleddatetime scheduleddeliverytime scheduledfor scheduledtime
		scheduletime scheduletype sendat
		senddate
		senddatetime sendlater sendingdatetime sendingspeedlimit sendon sendtime startdate starttime time timetosend
		timezone
		expire expireat expires expiresat expiry timetolive ttl validity validityminutes validityperiod
		validityperiodinseconds
		validityperiodtimeunit validuntil
		applicationsid callback callbackdata callbackurl deliveryreport deliveryreportrequest deliveryreporturl dlr
		dlrmask dlrurl eventurl intermediatereport notifycontenttype notifyurl providefeedback pushnotificationurl
		reporturl statuscallback statuscallbackurl statusreport statusreportreq statusreporturl statusurl webhook
		webhooks webhookurl
		dryrun issandbox istest sandbox sandboxmode simulate test testmode testonly
		flash flashmessage flashsms isflash mclass messageclass
	`,
	noAlias: `
		from fromname fromnumber mask messagingservicesid originationidentity originator sender senderaddress senderid
		senderids
		sendername senderprofileid source sourceaddr sourceaddress src
	`,
})

func refusals(names map[string]string) map[string]string {
	messages := map[string]string{}
	for message, list := range names {
		for name := range strings.FieldsSeq(list) {
			messages[name] = message
		}
	}
	return messages
}

// senderField is the rule of sender_id, whose value must be in the integration's list.
var senderField = request.Text{Min: 1, Max: 64}

// from returns the accounts whose integration lists the sender, with the sender in their settings. Without a sender all
// accounts send under their own one. The error for a sender in no list names the field.
func (r *sendRequest) from(accounts []upstream.Account) ([]upstream.Account, error) {
	if r.sender == "" {
		return accounts, nil
	}
	var allowed []upstream.Account
	for _, account := range accounts {
		if slices.Contains(strings.Split(account.Settings[vendors.SenderIDs], ","), r.sender) {
			account.Settings = maps.Clone(account.Settings)
			account.Settings[vendors.SenderID] = r.sender
			allowed = append(allowed, account)
		}
	}
	if len(allowed) == 0 {
		return nil, errSender
	}
	return allowed, nil
}

var errSender = &request.Error{
	Status: 422, Code: request.CodeValidationFailed, Message: "The request has missing or invalid fields.",
	Details: request.Problems{"sender_id": {"must be in the integration's list of senders"}},
}
