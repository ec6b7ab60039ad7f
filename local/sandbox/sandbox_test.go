package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2"
	"github.com/aws/aws-sdk-go-v2/service/pinpointsmsvoicev2/types"
	"github.com/aws/smithy-go"
	"go.yaml.in/yaml/v3"

	"svcapi/test/clocktest"
	"svcapi/test/must"
)

func start(t *testing.T) *Server {
	t.Helper()
	s := must.Get(Start()).Or(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// sample is a request to a vendor, as an adapter would make it.
type sample struct {
	method, path, authorization, body string
}

func (s *Server) send(ctx context.Context, in sample) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, in.method, s.URL+in.path, strings.NewReader(in.body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("X-API-VERSION", "v1") // of Hutch
	if in.authorization != "" {
		r.Header.Set("Authorization", in.authorization)
	}
	if strings.HasPrefix(in.body, "{") {
		r.Header.Set("Content-Type", "application/json")
	} else if in.body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// login logs in with a vendor's account and returns the token as a bearer.
func (s *Server) login(t *testing.T, vendor, path string) string {
	t.Helper()
	body, _ := json.Marshal(Account(vendor)) // texts always marshal
	_, text, err := s.send(t.Context(), sample{"POST", "/" + vendor + path, "", string(body)})
	var login struct{ Token, AccessToken string }
	if err != nil || json.Unmarshal([]byte(text), &login) != nil || login.Token+login.AccessToken == "" {
		t.Fatalf("login: %s, %v", text, err)
	}
	return "Bearer " + login.Token + login.AccessToken
}

const (
	dialogLogin, hutchLogin   = "/api/v2/user/login", "/api/login"
	dialogKey, dialogPassword = "dialog-sandbox-esmsqk", "dialog-sandbox-password"
)

const (
	quicksendPath = "/quicksend/Client/api.php?FUN="
	dialogPath    = "/dialog/api/v1/message-via-url/create/url-campaign?"
	twilioPath    = "/twilio/2010-04-01/Accounts/" + twilioSID
	twilioSID     = "AC00000000000000000000000000000001"
	textlkToken   = "1000|textlk-sandbox-token"
	quicksendUser = "account@quicksend.example"
	quicksendKey  = "quicksend-sandbox-api-key"
)

var (
	quicksendAuth = basicAuth(quicksendUser, quicksendKey)
	twilioAuth    = basicAuth(twilioSID, "twilio-sandbox-auth-token")
	transaction   = 0
)

// sends are a request to one vendor of each form: NINE are the digits of the number, BAD is empty, or makes the
// credentials wrong, and NEXT is a new number.
var sends = map[string]sample{
	"quicksend": {"POST", quicksendPath + "SEND_SINGLE", quicksendAuth + "BAD",
		`{"senderID":"Demo","to":"0NINE","msg":"Hi"}`},
	"textlk": {"POST", "/textlk/api/v3/sms/send", "Bearer " + textlkToken + "BAD",
		`{"recipient":"94NINE","sender_id":"Demo","type":"plain","message":"Hi"}`},
	"hutch": {"POST", "/hutch/api/sendsms", hutchLogin,
		`{"campaignName":"SMS","mask":"Demo","numbers":"94NINE","content":"Hi"}`},
	"dialogv2": {"POST", "/dialogv2/api/v2/sms", dialogLogin, `{"msisdn":[{"mobile":"NINE"}],"message":"Hi",` +
		`"sourceAddress":"Demo","transaction_id":NEXT,"payment_method":0}`},
	"twilio": {"POST", twilioPath + "/Messages.json", twilioAuth + "BAD", "To=%2B94NINE&From=Demo&Body=Hi"},
}

// sendTo sends a vendor's request of sends to a number of nine digits, with good credentials where bad is empty.
func (s *Server) sendTo(ctx context.Context, t *testing.T, vendor, nine, bad string) (int, string, error) {
	t.Helper()
	in := sends[vendor]
	if strings.HasPrefix(in.authorization, "/") && bad == "" {
		in.authorization = s.login(t, vendor, in.authorization)
	}
	transaction++
	fill := strings.NewReplacer("NINE", nine, "BAD", bad, "NEXT", strconv.Itoa(transaction))
	in.authorization, in.body = fill.Replace(in.authorization), fill.Replace(in.body)
	return s.send(ctx, in)
}

// TestOutcomes checks the table of magic numbers for one vendor of each form: the status and a part of the body.
// functions/sms TestDocumentedCodes has every vendor.
func TestOutcomes(t *testing.T) {
	s := start(t)
	wants := map[string]map[string]string{
		"quicksend": {"771234567": `200 "status":"success"`, "770000001": `200 "status":"error"`,
			"770000002": `401 Unauthorized`},
		"textlk": {"771234567": `200 "sms_count":1`, "770000001": `200 "status":"error"`,
			"770000002": `401 Unauthenticated`},
		"hutch": {"771234567": `200 "serverRef":`, "770000001": `400 Invalid number`, "770000002": `403 may not send`},
		"dialogv2": {"771234567": `200 Campaign Created`, "770000001": `200 "errCode":109`,
			"770000002": `401 "errCode":116`},
		"twilio": {"771234567": `201 "status":"queued"`, "770000001": `400 "code":21610`, "770000002": `401 "code":20003`},
	}
	for name, want := range wants {
		want["770000003"], want["770000005"] = "200 <!doctype html>", "500 Internal Server Error"
		for number, expected := range want {
			status, part, _ := strings.Cut(expected, " ")
			got, body, err := s.sendTo(t.Context(), t, name, number, "")
			if err != nil || fmt.Sprint(got) != status || !strings.Contains(body, part) {
				t.Errorf("%s to %s: %d %s %v, want %s", name, number, got, body, err, expected)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, body, err := s.sendTo(ctx, t, name, "770000004", ""); err == nil {
			t.Errorf("%s responds to a request that should hang: %s", name, body)
		}
		cancel()
	}
	for name := range wants {
		got, body, err := s.sendTo(t.Context(), t, name, "771234567", "x")
		if err != nil || got != http.StatusUnauthorized {
			t.Errorf("%s accepts wrong credentials: %d %s %v", name, got, body, err)
		}
	}
}

func TestSlow(t *testing.T) {
	s := start(t)
	began, pause := time.Now(), clocktest.Beside(2*time.Second)
	status, body, err := s.sendTo(t.Context(), t, "twilio", "770000006", "")
	if took := time.Since(began); err != nil || status != http.StatusCreated || took < 2*time.Second ||
		took > pause()*3/2 {
		t.Errorf("%d %s %v after %v, want an acceptance after 2 s", status, body, err, took)
	}
}

// TestRequests checks each vendor's own responses: its refusals of malformed requests, its balance, a cost check.
func TestRequests(t *testing.T) {
	s := start(t)
	token, hutchToken := s.login(t, "dialogv2", dialogLogin), s.login(t, "hutch", hutchLogin)
	const quick, text, sms = quicksendPath, "/textlk/api/v3/sms/send", "/dialogv2/api/v2/sms"
	notify := "/notifylk/api/v1/send?user_id=10001&api_key=notifylk-sandbox-api-key"
	dial := dialogPath + "esmsqk=" + dialogKey
	bearer := "Bearer " + textlkToken
	const lenz = `{"user_id":"20002","api_key":"smslenz-sandbox-api-key"`
	const login, most, rest = "/dialogv2" + dialogLogin, `{"msisdn":[{"mobile":"771234567"}],"message":"m"`,
		`,"sourceAddress":"D","payment_method":0`
	for _, c := range []struct {
		sample
		status int
		part   string
	}{
		{sample{"POST", quick + "SEND_SINGLE", quicksendAuth, `{"senderID":"D","to":"+94771234567","msg":"m"}`},
			200, "Invalid number"},
		{sample{"POST", quick + "SEND_SINGLE", quicksendAuth, `{"senderID":"D","to":["0771234567"],"msg":"m"}`},
			200, "Invalid request"},
		{sample{"POST", quick + "SEND_SINGLE", quicksendAuth, `{"to":"0771234567","msg":"m"}`}, 200, "sender"},
		{sample{"POST", quick + "SEND_SINGLE", quicksendAuth, `{"senderID":"D","to":"0771234567","msg":""}`}, 200, "empty"},
		{sample{"POST", quick + "SEND_BULK_SAME", quicksendAuth, `{"senderID":"D","to":[],"msg":"m"}`},
			200, "Invalid number"},
		{sample{"POST", quick + "SEND_SINGLE", quicksendAuth, `{"senderID":"D","to":"0771234567","msg":"m","test":true}`},
			200, "Invalid request"},
		{sample{"GET", notify + "&sender_id=D&to=94771234567&message=m&schedule=1", "", ""}, 200, "Invalid field"},
		{sample{"POST", "/smslenz/send-sms", "", lenz + `,"sender_id":"D","contact":"+94771234567","message":"m","x":""}`},
			422, "Validation failed"},
		{sample{"GET", dial + "&list=0771234567&source_address=D&message=m&x=1", "", ""}, 200, "2002"},
		{sample{"POST", "/hutch/api/sendsms", hutchToken,
			`{"campaignName":"SMS","mask":"D","numbers":"94771234567","content":"Hi","x":1}`}, 400, "Invalid request"},
		{sample{"POST", twilioPath + "/Messages.json", twilioAuth, "To=%2B94771234567&From=D&Body=m&MaxPrice=1"},
			400, "Unknown parameter"},
		{sample{"POST", twilioPath + "/Messages.json", twilioAuth, "To=%2B94771234567&To=%2B94771234568&From=D&Body=m"}, 400,
			"21211"},
		{sample{"POST", text, bearer, `{"recipient":"94771234567","sender_id":"D","type":"plain","message":"m","x":1}`}, 200,
			"Invalid field"},
		{sample{"POST", quick + "NONE", quicksendAuth, `{}`}, 200, "Invalid function"},
		{sample{"GET", quick + "SEND_SINGLE", quicksendAuth, ""}, 404, "Not Found"},
		{sample{"GET", notify + "&sender_id=D&to=0771234567&message=m", "", ""}, 200, "Invalid number"},
		{sample{"GET", notify + "&to=94771234567&message=m", "", ""}, 200, "sender_id"},
		{sample{"GET", notify + "&sender_id=D&to=94771234567&message=%E0%B6%9A", "", ""}, 200, "type=unicode"},
		{sample{"POST", text, bearer, `{"recipient":"0771234567","sender_id":"D","type":"plain","message":"m"}`}, 200,
			"Invalid phone number"},
		{sample{"POST", text, bearer, `{"recipient":"94771234567","sender_id":"TwelveLetter","type":"plain","message":"m"}`},
			200, "sender id"},
		{sample{"POST", text, bearer, `{"recipient":"94771234567","sender_id":"D","message":"m"}`}, 200, "type"},
		{sample{"POST", text, bearer, `{`}, 400, "error"},
		{sample{"GET", dial + "&source_address=D&message=m", "", ""}, 200, "2003"},
		{sample{"GET", dial + "&list=0771234567&source_address=D", "", ""}, 200, "2004"},
		{sample{"GET", dial + "&list=%2B94771234567&source_address=D&message=m", "", ""}, 200, "2005"},
		{sample{"GET", dial + "&list=0771234567&message=m", "", ""}, 200, "2002"},
		{sample{"POST", sms, token, `{"msisdn":[{"mobile":"0771234567"}],"message":"m"` + rest + `,"transaction_id":1}`}, 200,
			`"errCode":109`},
		{sample{"POST", sms, token, most + rest + `}`}, 400, `"errCode":107`},
		{sample{"POST", sms, token, most + rest + `,"transaction_id":"1"}`}, 400, `"errCode":101`},
		{sample{"POST", sms, token, `{"msisdn":[` + strings.Repeat(`{"mobile":"771234567"},`, 1000) +
			`{"mobile":"771234567"}],"message":"m","transaction_id":1` + rest + `}`}, 400, `"errCode":101`},
		{sample{"POST", sms, token, most + rest + `,"transaction_id":1,"schedule":"now"}`}, 400, `"errCode":101`},
		{sample{"POST", sms, token, `{"msisdn":[{"mobile":"771234567"},{"mobile":"771234567"},{"mobile":"x"},` +
			`{"mobile":"770000007"}],"message":"m"` + rest + `,"transaction_id":6}`}, 200,
			`"duplicatesRemoved":1,"invalidNumbers":1,"mask_blocked_numbers":1`},
		{sample{"POST", sms, token, `{"msisdn":[{"mobile":"770000001"}],"message":"m"` + rest + `,"transaction_id":7}`}, 200,
			`"errCode":109`},
		{sample{"POST", sms, token, `{"msisdn":[],"message":"m"` + rest + `,"transaction_id":1}`}, 400, `"errCode":101`},
		{sample{"POST", sms, token, most + rest + `,"transaction_id":999999999999999999}`}, 200, "success"},
		{sample{"POST", sms, token, most + rest + `,"transaction_id":1000000000000000000}`}, 400, `"errCode":101`},
		{sample{"POST", sms, token, `{"message":"m","transaction_id":1` + rest + `}`}, 400, `"errCode":107`},
		{sample{"POST", sms, token, `{"msisdn":[{"mobile":"771234567"}],"transaction_id":1` + rest + `}`}, 400,
			`"errCode":107`},
		{sample{"POST", sms, token, most + `,"transaction_id":1,"payment_method":0}`}, 400, `"errCode":107`},
		{sample{"POST", sms, token, most + `,"transaction_id":1,"sourceAddress":"D"}`}, 400, `"errCode":107`},
		{sample{"POST", sms, token, most + `,"transaction_id":1,"sourceAddress":"D","payment_method":1}`}, 400,
			`"errCode":101`},
		{sample{"POST", sms, "", most + rest + `,"transaction_id":1}`}, 401, `"errCode":106`},
		{sample{"POST", login, "", `{"username":"dialog-sandbox-user"}`}, 400, `"errCode":107`},
		{sample{"POST", login, "", `{"username":"x","password":"y"}`}, 401, `"errCode":102`},
		{sample{"GET", notify + "&sender_id=D&to=94771234567,94712345678&message=m", "", ""}, 200, "Invalid number"},
		{sample{"GET", notify + "&sender_id=D&to=94771234567&to=94712345678&message=m", "", ""}, 200, "Invalid number"},
		{sample{"POST", "/smslenz/send-sms", "",
			lenz + `,"sender_id":"D","contact":"+94771234567,+94712345678","message":"m"}`}, 422, "contact"},
		{sample{"POST", quick + "SEND_SINGLE", quicksendAuth, `{"senderID":"D","to":"0771234567,0712345678","msg":"m"}`},
			200, "Invalid number"},
		{sample{"POST", twilioPath + "/Messages.json", twilioAuth, "From=D&Body=m"}, 400, "21604"},
		{sample{"POST", twilioPath + "/Messages.json", twilioAuth, "To=0771234567&From=D&Body=m"}, 400, "21211"},
		{sample{"POST", twilioPath + "/Messages.json", twilioAuth, "To=%2B94771234567&Body=m"}, 400, "21603"},
		{sample{"POST", twilioPath + "/Messages.json", twilioAuth, "To=%2B94771234567&From=D"}, 400, "21602"},
		{sample{"GET", "/twilio/2010-04-01/Accounts/ACother/Balance.json", twilioAuth, ""}, 404, "20404"},
		{sample{"POST", sms, token, most + rest + `,"transaction_id":7}`}, 200, "success"},
		{sample{"POST", sms, token, most + rest + `,"transaction_id":7}`}, 400, "used before"},
		{sample{"POST", sms + "/check-transaction", token, `{"transaction_id":7}`}, 200, `"campaign status":"completed"`},
		{sample{"POST", sms + "/check-transaction", token, `{"transaction_id":8}`}, 200, `"errCode":103`},
		{sample{"POST", sms + "/check-transaction", token, `{"transaction_id":8}`}, 429, `"errCode":117`},
		{sample{"GET", twilioPath + "/Messages/SM1.json", twilioAuth, ""}, 404, "20404"},
		{sample{"GET", twilioPath + "/Messages.json?DateSent%3E=2999-01-01T00:00:00Z&PageSize=1000", twilioAuth, ""},
			200, `{"messages":[],`},
		{sample{"GET", twilioPath + "/Messages.json?PageSize=1001", twilioAuth, ""}, 400, "Unknown parameter"},
		{sample{"GET", "/textlk/api/v3/sms/unknown", bearer, ""}, 404, "Not found"},
		{sample{"GET", "/maxmind/geoip/v2.1/city/8.8.8.8", basicAuth("100001", "wrong"), ""}, 401, "AUTHORIZATION_INVALID"},
		{sample{"POST", quick + "CHECK_BALANCE", quicksendAuth, "{}"}, 200, `1250.50`},
		{sample{"GET", strings.Replace(notify, "send", "status", 1), "", ""}, 200,
			`{"status":"success","data":{"active":true,"acc_balance":3500.00}}`},
		{sample{"GET", "/textlk/api/v3/balance", bearer, ""}, 200,
			`"data":{"remaining_balance":"950","expired_on":"8th Sep 30, 4:44 PM"}`},
		{sample{"GET", "/ultimatesms/balance", "Bearer 2000|ultimatesms-sandbox-token", ""}, 200,
			`"remaining_balance":"950"`},
		{sample{"POST", "/smslenz/account-status", "", lenz + `}`}, 200, `"data":{"sms_credit_balance":"1450.00"}`},
		{sample{"GET", "/dialog/api/v1/message-via-url/check/balance?esmsqk=" + dialogKey, "", ""}, 200, `1|4500.00`},
		{sample{"GET", twilioPath + "/Balance.json", twilioAuth, ""}, 200, `"balance":"12.05","currency":"USD"}`},
		{sample{"POST", quick + "SEND_BULK_SAME", quicksendAuth,
			`{"senderID":"Demo","to":["0771234567","0712345678"],"msg":"Hi","check_cost":true}`}, 200,
			`"campaign_total_cost":1.28,"campaign_total_numbers":2`},
	} {
		status, body, err := s.send(t.Context(), c.sample)
		if err != nil || status != c.status || !strings.Contains(body, c.part) {
			t.Errorf("%v: %d %s %v, want %d with %s", c.sample, status, body, err, c.status, c.part)
		}
		want := "send"
		switch {
		case strings.Contains(c.path, "maxmind"):
			want = "lookup"
		case strings.Contains(strings.ToLower(c.path), "balance") || strings.Contains(c.path, "status"):
			want = "balance"
		case c.method == "GET" && strings.Contains(c.path, "/Messages") || strings.HasSuffix(c.path, "check-transaction"):
			want = "status"
		case strings.Contains(c.path, "login"):
			want = "login"
		case strings.Contains(c.body, "check_cost"):
			want = "check_cost"
		}
		all := s.Calls()
		if got := all[len(all)-1]; got.Operation != want && c.status != 404 || got.To == nil {
			t.Errorf("noted as %+v, want %s", got, want)
		}
	}
}

// TestPace checks that a vendor refuses the 21st request within a second, and no request a second later.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rule{Pace: 20}
		for i := range 60 {
			if got, want := r.permits(), i%21 != 20; got != want {
				t.Errorf("request %d: %t", i, got)
			}
			if i%21 == 20 {
				time.Sleep(time.Second)
			}
		}
	})
}

// TestLock checks that Dialog locks an account after three failed logins, that each login meanwhile prolongs the lock,
// and that a good login resets the count.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rule{Locks: 3}
		for i, step := range []struct {
			after          time.Duration
			good, unlocked bool
		}{
			{0, false, true}, {0, false, true}, {0, true, true}, {0, false, true}, {0, false, true}, {0, false,
				true}, {0, true, false},
			{lockedFor - time.Second, true, false}, {lockedFor - time.Second, true, false}, {lockedFor, true,
				true}, {0, false, true},
		} {
			time.Sleep(step.after)
			if got := r.unlocked(step.good); got != step.unlocked {
				t.Errorf("login %d: %t", i, got)
			}
		}
	})
	s := start(t)
	for _, want := range []string{`"errCode":115`, `"errCode":115`, `"errCode":115`, `"errCode":116`} {
		_, body, err := s.send(t.Context(),
			sample{"POST", "/dialogv2" + dialogLogin, "", `{"username":"dialog-sandbox-user","password":"x"}`})
		if err != nil || !strings.Contains(body, want) {
			t.Errorf("%s %v, want %s", body, err, want)
		}
	}
}

// TestDocuments checks the documents: each response that a rule or an outcome names exists, and each rule and response
// has a source.
func TestDocuments(t *testing.T) {
	documents := map[string]*document{}
	for _, file := range []string{"sms.yaml", "lookups.yaml", "rates.yaml"} {
		decoder := yaml.NewDecoder(must.Get(files.Open(file)).Or(t))
		decoder.KnownFields(true)
		must.Succeed(t, decoder.Decode(&documents))
	}
	paced, sources := map[string]int{}, map[string]string{}
	for name, d := range documents {
		named := []string{d.Unknown}
		for _, c := range d.Calls {
			named = slices.AppendSeq(named, maps.Values(c.Responses))
			for _, r := range c.Rules {
				paced[name] += r.Pace
				if named = append(named, r.Give); r.Unless != "" && conditions[r.Unless] == nil {
					t.Errorf("%s: no condition %s", name, r.Unless)
				}
				sources[cmp.Or(r.Source, d.Source)] = name
				if r.Unless == "known fields" && !strings.HasPrefix(r.Source, "made") { // no document says what follows
					t.Errorf("%s: source of unknown fields %q", name, r.Source)
				}
			}
			if c.Again != "" {
				named = append(named, c.Again)
			}
		}
		for _, response := range named {
			if d.Responses[response] == nil {
				t.Errorf("%s lacks the response %q", name, response)
			}
		}
		for _, r := range d.Responses {
			sources[cmp.Or(r.Source, d.Source)] = name
		}
	}
	for source, name := range sources {
		if !strings.HasPrefix(source, "V: ") && !strings.HasPrefix(source, "T: ") && !strings.HasPrefix(source, "made") {
			t.Errorf("%s: source %q", name, source)
		}
	}
	if paced["dialogv2"] != 22 || paced["aws"] != 40 { // 20 sends and 2 checks; AWS' rules are those of two calls
		t.Errorf("paces %v", paced)
	}
}

// TestCalls checks the list of calls over HTTP: every destination as received, the vendor's path, and no credential.
func TestCalls(t *testing.T) {
	s := start(t)
	for _, in := range []sample{
		{"POST", quicksendPath + "SEND_BULK_DIFFERENT", quicksendAuth,
			`{"senderID":"D","msg_list":[{"to":"0771234567","msg":"a"},{"to":"0712345678","msg":"b"}]}`},
		{"POST", "/textlk/api/v3/sms/send", "Bearer " + textlkToken,
			`{"recipient":"94771234567,94712345678","sender_id":"D","type":"plain","message":"m"}`},
		{"GET", dialogPath + "esmsqk=" + dialogKey + "&list=771234567,0712345678&source_address=D&message=m", "", ""},
		{"GET", dialogPath + "esmsqk=someone-elses-key&list=0771234567,0712345678&source_address=D&message=m", "", ""},
		{"POST", "/notifylk/api/v1/send", "",
			`{"user_id": "10001", "api_key": "someone-\"elses-key", "sender_id":"D","to":"94771234567","message":"m"}`},
		{"POST", "/notifylk/api/v1/send", "", "user_id=10001&api_key=someone-elses-key&to=94771234567"},
		{"POST", "/twilio/2010-04-01/Accounts/ACsomeone-elses-key/Messages.json", "Basic someone-elses-key",
			"To=%2B94771234567&From=D&Body=m"},
		{"POST", "/dialogv2" + dialogLogin, "", `{"username":"someone-elses-key","password":"` + dialogPassword + `"}`},
		{"GET", "/textlk/nowhere?x=" + dialogPassword, "someone-elses-key", ""},
	} {
		if _, _, err := s.send(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	_, body, err := s.send(t.Context(), sample{"GET", "/_sandbox/calls", "", ""})
	var calls []Call
	if err != nil || json.Unmarshal([]byte(body), &calls) != nil {
		t.Fatalf("calls: %s %v", body, err)
	}
	to := []string{
		"0771234567 0712345678", "94771234567 94712345678", "771234567 0712345678", "0771234567 0712345678",
		"94771234567", "94771234567", "+94771234567", "", "",
	}
	for i, call := range calls {
		if strings.Join(call.To, " ") != to[i] || call.At.IsZero() || strings.HasPrefix(call.Path, "/"+call.Vendor) {
			t.Errorf("call %d: %+v", i, call)
		}
	}
	if got, want := calls[0].Path, "/Client/api.php?FUN=SEND_BULK_DIFFERENT"; got != want ||
		calls[0].Headers["Authorization"] != "Basic ***" {
		t.Errorf("call 0: path %s, headers %v", got, calls[0].Headers)
	}
	for _, secret := range []string{"elses-key", quicksendKey, textlkToken, dialogKey, `"` + dialogPassword, "10001",
		base64.StdEncoding.EncodeToString([]byte(quicksendUser))} {
		if strings.Contains(body, secret) {
			t.Errorf("the calls show %s: %s", secret, body)
		}
	}
	s.Forget()
	if _, body, err := s.send(t.Context(), sample{"GET", "/_sandbox/calls", "", ""}); err != nil ||
		strings.TrimSpace(body) != "[]" {
		t.Errorf("after Forget: %s %v", body, err)
	}
}

// TestRules checks the outcomes that only rules choose.
func TestRules(t *testing.T) {
	s := start(t)
	must.Succeed(t, s.SetRules(
		Rule{To: "0771111111", Outcome: Truncated}, Rule{To: "+94772222222", Outcome: Closed},
		Rule{Vendor: "quicksend", Operation: "send", Outcome: "without id"},
		Rule{Vendor: "dialogv2", Operation: "send", Outcome: "100", Times: 1}, Rule{Vendor: "textlk", DelayMS: 80},
	))
	for vendor := range sends {
		for _, number := range []string{"771111111", "772222222"} {
			if status, body, err := s.sendTo(t.Context(), t, vendor, number, ""); err == nil {
				t.Errorf("%s to %s: %d %s, want a broken connection", vendor, number, status, body)
			}
		}
	}
	for i, c := range []struct {
		vendor, number string
		status         int
		part           string
	}{
		{"quicksend", "771234567", 200, `{"status":"success"}`},
		{"dialogv2", "771234567", 401, `"errCode":100`},
		{"dialogv2", "771234567", 200, `"success"`},
		{"textlk", "771234567", 200, `"success"`},
		{"textlk", "770000001", 200, `"error"`},
	} {
		began := time.Now()
		status, body, err := s.sendTo(t.Context(), t, c.vendor, c.number, "")
		if err != nil || status != c.status || !strings.Contains(body, c.part) {
			t.Errorf("send %d: %d %s %v, want %d %s", i, status, body, err, c.status, c.part)
		}
		if c.vendor == "textlk" && time.Since(began) < 80*time.Millisecond {
			t.Errorf("send %d: no delay", i)
		}
	}
	if err := s.SetRules(Rule{Outcome: "fireworks"}); err == nil {
		t.Error("an unknown outcome is accepted")
	}
	if err := s.SetRules(); err != nil || len(s.Rules()) != 0 {
		t.Errorf("rules = %v, %v", s.Rules(), err)
	}
}

func TestCloseEndsHangingRequests(t *testing.T) {
	s := start(t)
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.sendTo(context.Background(), t, "twilio", "770000004", "")
		ended <- err
	}()
	for len(s.Calls()) == 0 {
		time.Sleep(time.Millisecond)
	}
	must.Succeed(t, s.Close())
	if err := <-ended; err == nil {
		t.Error("the request that hangs got a response")
	}
}

// TestAWS sends requests through AWS's own client, whose signature the sandbox verifies.
func TestAWS(t *testing.T) {
	s := start(t)
	client := func(key, secret string) *pinpointsmsvoicev2.Client {
		return pinpointsmsvoicev2.New(pinpointsmsvoicev2.Options{
			Region: "eu-west-1", BaseEndpoint: new(s.URL + "/aws"), RetryMaxAttempts: 1,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: key, SecretAccessKey: secret,
					SessionToken: map[bool]string{true: "local"}[secret == "local"]}, nil
			}),
		})
	}
	key := Account("aws")["access_key_id"]
	own := client(key, Account("aws")["secret_access_key"])
	for _, c := range []struct {
		client         *pinpointsmsvoicev2.Client
		to, body, code string
		dry            bool
	}{
		{own, "+94771234567", "Hi", "", false},
		{own, "+94771234567", "Hi", "", true},
		{client("LOCALSMS", "local"), "+94771234567", "Hi", "", false},
		{own, "+94770000001", "Hi", "ConflictException", false},
		{own, "+94770000002", "Hi", "UnrecognizedClientException", false},
		{own, "0771234567", "Hi", "ValidationException", false},
		{own, "+94771234567", strings.Repeat("x", 1601), "ValidationException", false},
		{client("AKIAOTHER", "x"), "+94771234567", "Hi", "UnrecognizedClientException", false},
		{client(key, "x"), "+94771234567", "Hi", "InvalidSignatureException", false},
	} {
		out, err := c.client.SendTextMessage(t.Context(), &pinpointsmsvoicev2.SendTextMessageInput{
			DestinationPhoneNumber: &c.to, MessageBody: &c.body, OriginationIdentity: new("Demo"),
			MessageType: types.MessageTypeTransactional, DryRun: c.dry,
		})
		var api smithy.APIError
		switch {
		case c.code == "" && (err != nil || aws.ToString(out.MessageId) == ""):
			t.Errorf("%+v: %v, %v", c, out, err)
		case c.code != "" && (!errors.As(err, &api) || api.ErrorCode() != c.code):
			t.Errorf("%+v: %v", c, err)
		}
	}
	calls := s.Calls()
	if calls[0].Operation != "send" || calls[1].Operation != "check_cost" ||
		calls[0].Headers["Authorization"] != "AWS4-HMAC-SHA256 ***" {
		t.Errorf("calls = %+v", calls[:2])
	}
	if text, _ := json.Marshal(calls); bytes.Contains(text, []byte(key)) {
		t.Error("the calls show the access key")
	}
}
