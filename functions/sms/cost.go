package main

import (
	"context"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"svcapi/functions/sms/vendors"
	"svcapi/shared/pattern"
	"svcapi/shared/request"
	"svcapi/shared/upstream"
)

var errNoUnitPrice = httpError(422, request.ReasonUnitPriceMissing,
	"The SMS integration has no usable unit price to estimate costs with.")

var unitPricePattern = pattern.New(vendors.UnitPricePattern)

// costResponse is provider_response of a cost check.
type costResponse struct {
	Status   string           `json:"status"`
	Campaign vendors.Campaign `json:"campaign_data"`
}

// estimate returns the job of a cost check, which sends nothing and costs nothing. The job calls the vendor only where
// the integration permits that, because no vendor documents that its estimate never sends.
func (g *group) estimate(account upstream.Account, r sendRequest) (*request.Job, error) {
	checker, native := g.adapter(account).(vendors.CostChecker)
	native = native && account.Settings[vendors.NativeCheckCost] == "true"
	var campaign vendors.Campaign
	var err error
	if !native {
		if campaign, err = computeCost(account, r); err != nil {
			return nil, err
		}
	}
	return &request.Job{Run: func(ctx context.Context) (*request.Result, error) {
		if native {
			var to []string
			for _, p := range r.recipients {
				to = append(to, p.To)
			}
			if campaign, err = checker.CheckCost(ctx, to, r.recipients[0].text); err != nil {
				return nil, vendorError(callErrors, account.Integration.Vendor, err)
			}
		}
		return &request.Result{
			Data: sendResult{Method: bulkSame, Units: requestedUnits(r.recipients),
				Provider: costResponse{"success", campaign}},
			Vendor: account.Integration.Vendor,
		}, nil
	}}, nil
}

// computeCost multiplies the units of the message, the unit price of the integration and the number of recipients.
func computeCost(account upstream.Account, r sendRequest) (vendors.Campaign, error) {
	text := account.Settings[vendors.UnitPrice]
	if !unitPricePattern().MatchString(text) {
		return vendors.Campaign{}, errNoUnitPrice.WithCause(fmt.Errorf("setting %s is %q", vendors.UnitPrice, text))
	}
	price, _ := new(big.Rat).SetString(text) // the pattern permits decimals only
	_, fraction, _ := strings.Cut(text, ".")
	places := max(2, len(fraction))
	times := func(amount *big.Rat, n int) *big.Rat { return new(big.Rat).Mul(amount, big.NewRat(int64(n), 1)) }

	message, numbers := r.recipients[0], len(r.recipients)
	unicode := "0"
	if message.unicode {
		unicode = "1"
	}
	cost := times(price, message.Units)
	return vendors.Campaign{
		Method: bulkSame, Type: "sms", Sender: account.Settings["sender_id"],
		Cost: times(cost, numbers).FloatString(places), Numbers: strconv.Itoa(numbers),
		Parts: []vendors.CampaignMessage{{
			Message: message.text, Unicode: unicode, Size: strconv.Itoa(message.Units),
			PerSMS: price.FloatString(places), Cost: cost.FloatString(places),
		}},
	}, nil
}
