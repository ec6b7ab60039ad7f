package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"svcapi/shared/pattern"
	"svcapi/shared/project"
	"svcapi/shared/rates"
	"svcapi/shared/request"
)

// The patterns of the path parameters (openapi.yaml#CurrencyBase, openapi.yaml#CurrencyTarget,
// docs/decisions/currency.md#amounts). A code of the central bank is always a target and in upper case.
var (
	basePattern   = pattern.New(`^[A-Za-z]{3}$`)
	targetPattern = pattern.New(`^(?:[A-Za-z]{3}|LKR-(?:SELL|BUY|CENTRAL))$`)
	amountPattern = pattern.New(`^\d{1,15}(\.\d{1,8})?$`)
)

// errCode returns the error for an unknown, an inactive or a malformed code.
func errCode(code, reason string) *request.Error {
	const shown = 20 // bytes
	if len(code) > shown {
		code = strings.ToValidUTF8(code[:shown], "") + "…"
	}
	return &request.Error{Status: 400, Code: request.CodeInvalidCurrency,
		Message: fmt.Sprintf("The currency code %q %s.", code, reason)}
}

// The reasons of errCode.
const (
	codeInactive    = "is unknown or inactive"
	baseMalformed   = "is invalid: a base is three letters"
	targetMalformed = "is invalid: a target is three letters, LKR-SELL, LKR-BUY or LKR-CENTRAL"
)

// updateFormat is the format of last_updated, which openapi.yaml#PairRate does not define.
const updateFormat = "2006-01-02T15:04:05Z"

type latestResult struct {
	Base    string                   `json:"base"`
	Updated string                   `json:"last_updated"`
	Rates   map[string]rates.Decimal `json:"rates"`
}

type historyResult struct {
	Base string     `json:"base"`
	From string     `json:"from"`
	To   string     `json:"to"`
	Days []dayRates `json:"days"`
}

type dayRates struct {
	Date    string                   `json:"date"`
	Updated string                   `json:"last_updated"`
	Rates   map[string]rates.Decimal `json:"rates"`
}

type pairResult struct {
	Base    string        `json:"base"`
	Target  string        `json:"target"`
	Rate    rates.Decimal `json:"rate"`
	Updated string        `json:"last_updated"`
}

type convertResult struct {
	pairResult
	Amount rates.Decimal `json:"amount"`
	Result rates.Decimal `json:"conversion_result"`
}

type codesResult struct {
	Count int          `json:"count"`
	Codes []rates.Code `json:"codes"`
}

const currencyPath = "/api/v1/utility/currency"

// routes returns the operations openapi.yaml#getLatestRates, openapi.yaml#getRateHistory, openapi.yaml#getPairRate,
// openapi.yaml#convertPairRate and openapi.yaml#listCurrencyCodes.
func (g *group) routes() (routes []request.Route) {
	for _, o := range []struct {
		name, path string
		decode     func(*request.Input) (rateRequest, error)
		data       resultData
	}{
		{"currency_latest", "/latest/{base}", decodeLatest, latest},
		// a name of its own would be one more custom metric, which docs/costs.md bounds
		{"currency_latest", "/history/{base}", g.decodeHistory, history},
		{"currency_pair", "/pair/{base}/{target}", decodePair, pair},
		{"currency_convert", "/pair/{base}/{target}/{amount}", decodeConversion, convert},
		{"currency_codes", "/codes", func(*request.Input) (rateRequest, error) { return rateRequest{}, nil }, codes},
	} {
		routes = append(routes, &request.Operation[rateRequest]{
			Name: o.name, Method: "GET", Path: currencyPath + o.path, Kind: project.Currency, Decode: o.decode,
			Prepare: func(ctx context.Context, call *request.Call, r rateRequest) (*request.Job, error) {
				return g.job(ctx, call, r, o.data)
			},
		})
	}
	return routes
}

func latest(r rateRequest, set *rates.Set, _ time.Time) (any, error) {
	if err := r.inactive(set); err != nil {
		return nil, err
	}
	return latestResult{r.base, set.Date.Format(updateFormat), r.row(set)}, nil
}

// history returns a row for each day. The codes must be active on the last day; a row has those of its own day.
func history(r rateRequest, set *rates.Set, _ time.Time) (any, error) {
	if err := r.inactive(set); err != nil {
		return nil, err
	}
	result := historyResult{Base: r.base, From: r.from.Format(time.DateOnly), To: r.day.Format(time.DateOnly)}
	for i, used := range r.sets {
		day := r.from.AddDate(0, 0, i).Format(time.DateOnly)
		result.Days = append(result.Days, dayRates{day, used.Date.Format(updateFormat), r.row(used)})
	}
	return result, nil
}

// inactive returns the error for the first code that is not active in the set, or nil.
func (r rateRequest) inactive(set *rates.Set) error {
	for _, code := range append([]string{r.base}, r.symbols...) {
		if !set.Active(code) {
			return errCode(code, codeInactive)
		}
	}
	return nil
}

// row returns the rates of the base in the set, of the requested codes or else of all.
func (r rateRequest) row(set *rates.Set) map[string]rates.Decimal {
	targets := r.symbols
	if targets == nil {
		targets = set.Codes()
	}
	row := make(map[string]rates.Decimal, len(targets))
	for _, target := range targets {
		if set.Active(r.base) && set.Active(target) {
			row[target] = set.Rate(r.base, target)
		}
	}
	return row
}

func codes(_ rateRequest, set *rates.Set, now time.Time) (any, error) {
	list := set.List(now)
	return codesResult{len(list), list}, nil
}

type rateRequest struct {
	base, target string
	amount       rates.Decimal
	symbols      []string     // in upper case; nil for all codes
	from, day    time.Time    // first and last day in UTC, midnight; zero for the set in use
	sets         []*rates.Set // of each day from the first to the last
}

func pair(r rateRequest, set *rates.Set, now time.Time) (any, error) { return r.rate(set, now) }

func convert(r rateRequest, set *rates.Set, now time.Time) (any, error) {
	pair, err := r.rate(set, now)
	if err != nil {
		return nil, err
	}
	return convertResult{pair, r.amount, rates.Convert(r.amount, pair.Rate)}, nil
}

func (r rateRequest) rate(set *rates.Set, now time.Time) (pairResult, error) {
	pair, ok := set.Pair(r.base, r.target, now)
	if !ok {
		bad := r.target
		if !set.Active(r.base) {
			bad = r.base
		}
		return pairResult{}, errCode(bad, codeInactive)
	}
	return pairResult{r.base, r.target, pair.Rate, pair.Date.Format(updateFormat)}, nil
}

// code returns a path parameter in upper case.
func code(in *request.Input, name string, matches func() *regexp.Regexp, malformed string) (string, error) {
	value := in.Parameter(name)
	if !matches().MatchString(value) {
		return "", errCode(value, malformed)
	}
	return strings.ToUpper(value), nil
}

// day notes a problem where the query parameter is no day, and returns false where the request does not have it.
func day(in *request.Input, name string) (day time.Time, sent bool) {
	text, sent := in.Query(name)
	day, err := time.Parse(time.DateOnly, text)
	if sent && (err != nil || day.IsZero()) {
		in.Problem(name, "must be a day as 2006-01-02")
	}
	return day, sent
}

// symbols returns the codes of the query parameter in upper case, nil without it.
func symbols(in *request.Input) (codes []string) {
	text, sent := in.Query("symbols")
	if !sent {
		return nil
	}
	for code := range strings.SplitSeq(text, ",") {
		if !basePattern().MatchString(code) {
			in.Problem("symbols", "must be currency codes of three letters, separated by commas")
			return nil
		}
		codes = append(codes, strings.ToUpper(code))
	}
	return codes
}

func decodeDay(in *request.Input) (r rateRequest, err error) {
	r.day, _ = day(in, "date")
	r.from = r.day
	r.base, err = code(in, "base", basePattern, baseMalformed)
	return r, err
}

func decodeLatest(in *request.Input) (rateRequest, error) {
	r, err := decodeDay(in)
	r.symbols = symbols(in)
	return r, err
}

// maxHistory is the most days of openapi.yaml#getRateHistory.
const maxHistory = 90

func (g *group) decodeHistory(in *request.Input) (r rateRequest, err error) {
	from, hasFrom := day(in, "from")
	to, hasTo := day(in, "to")
	if !hasTo {
		to = g.today()
	}
	if !hasFrom {
		from = to
	}
	r.from, r.day = from, to
	if days := int(r.day.Sub(r.from)/(24*time.Hour)) + 1; len(in.Problems()) == 0 && (days < 1 || days > maxHistory) {
		in.Problem("from", fmt.Sprintf("must be a day from which 1 to %d days lead to the last day", maxHistory))
	}
	r.symbols = symbols(in)
	r.base, err = code(in, "base", basePattern, baseMalformed)
	return r, err
}

func decodePair(in *request.Input) (rateRequest, error) {
	r, err := decodeDay(in)
	if err == nil {
		r.target, err = code(in, "target", targetPattern, targetMalformed)
	}
	return r, err
}

// decodeConversion validates the codes before the amount, because the error of a malformed code comes first.
func decodeConversion(in *request.Input) (rateRequest, error) {
	r, err := decodePair(in)
	if err != nil {
		return r, err
	}
	text := in.Parameter("amount")
	amount, err := rates.Parse(text)
	if !amountPattern().MatchString(text) || err != nil || amount.Sign() == 0 {
		in.Problem("amount", "must be a number above 0 of at most 15 digits, with at most 8 decimals")
	}
	r.amount = amount.Reduced()
	return r, nil
}
