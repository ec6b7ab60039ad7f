package main

import (
	"context"
	"time"

	"svcapi/shared/burner"
	"svcapi/shared/project"
	"svcapi/shared/request"
	"svcapi/shared/wallet"
)

// emailRequest is the decoded body of POST /security/burner-email-shield.
type emailRequest struct {
	email  string // as in the request
	domain string // lower-case ASCII
}

// emailResult is openapi.yaml#BurnerEmailResult.
type emailResult struct {
	Email         string  `json:"email"`
	Domain        string  `json:"domain"`
	ValidSyntax   bool    `json:"is_valid_syntax"`
	Disposable    bool    `json:"is_disposable"`
	Source        string  `json:"source"`
	ExecutionTime float64 `json:"execution_time_ms"`
}

// The values of source name the list by which the domain is disposable.
const (
	sourceCustom = "custom"
	sourceGlobal = "global"
	sourceNone   = "none"
)

// emailShield checks e-mail addresses.
type emailShield struct {
	own    *burner.Store
	global *globalList
	// after runs work when the response has been sent.
	after func(ctx context.Context, name string, work func(context.Context) error)
}

// operation returns the operation openapi.yaml#checkBurnerEmail, which calls no vendor. The security integration must
// be active, and decides only about the mode.
func (s *emailShield) operation() request.Route {
	return &request.Operation[emailRequest]{
		Name: "burner_email_shield", Method: "POST", Path: "/api/v1/security/burner-email-shield",
		Kind: project.Security, Price: wallet.BurnerEmailShield,
		Decode: decodeEmail,
		Prepare: func(ctx context.Context, call *request.Call, r emailRequest) (*request.Job, error) {
			// The request does not wait, and the instance is not frozen within the read.
			if wait := s.global.refresh(ctx); wait != nil {
				s.after(ctx, "read global list", wait)
			}
			return s.check(call, r), nil
		},
	}
}

const maxEmail = 255 // characters (openapi.yaml#BurnerEmailRequest)

func decodeEmail(in *request.Input) (emailRequest, error) {
	r := emailRequest{email: in.Text("email", request.Text{Required: true, Min: 1, Max: maxEmail})}
	if r.email == "" || len([]rune(r.email)) > maxEmail {
		return r, nil // the problem is noted
	}
	domain, err := burner.Domain(r.email)
	if err != nil {
		in.Problem("email", err.Error())
	}
	r.domain = domain
	return r, nil
}

// check reads the project's judgement, and searches the global list where there is none. ExecutionTime is the time of
// both.
func (s *emailShield) check(call *request.Call, r emailRequest) *request.Job {
	var own burner.Judgement
	var spent time.Duration
	return &request.Job{
		Credits: call.Credits(1),
		Prefetch: func(ctx context.Context) (err error) {
			start := time.Now()
			own, err = s.own.Find(ctx, call.Project.ID, r.domain)
			spent = time.Since(start)
			return err
		},
		Run: func(context.Context) (*request.Result, error) {
			start := time.Now()
			source := sourceNone
			if own == burner.Disposable {
				source = sourceCustom
			} else if own == burner.None && s.global.has(r.domain) {
				source = sourceGlobal
			}
			spent += time.Since(start)
			return &request.Result{Data: emailResult{
				Email: r.email, Domain: r.domain, ValidSyntax: true, Disposable: source != sourceNone, Source: source,
				ExecutionTime: float64(spent.Microseconds()) / 1000,
			}}, nil
		},
	}
}
