package main

import (
	"context"
	"time"

	"svcapi/functions/security/disposable"
	"svcapi/shared/address"
	"svcapi/shared/api"
	"svcapi/shared/burner"
	"svcapi/shared/credit"
	"svcapi/shared/project"
)

// emailRequest is the decoded body of POST /security/burner-email-shield.
type emailRequest struct {
	email  string // as sent
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

// The values of source: which list holds the domain or a parent.
const (
	sourceCustom = "custom"
	sourceGlobal = "global"
	sourceNone   = "none"
)

// burnerEmailShield is POST /security/burner-email-shield. It asks no vendor:
// the security integration must be active, and gives its mode, no more.
func burnerEmailShield(own *burner.Store) api.Route {
	return &api.Operation[emailRequest]{
		Name: "burner_email_shield", Method: "POST", Path: "/api/v1/security/burner-email-shield",
		Kind: project.Security, Price: credit.BurnerEmailShield,
		Decode: decodeEmail,
		Prepare: func(_ context.Context, call *api.Call, r emailRequest) (*api.Job, error) {
			return checkEmail(own, call, r), nil
		},
	}
}

const maxEmail = 255 // characters (openapi.yaml#BurnerEmailRequest)

func decodeEmail(in *api.Input) (emailRequest, error) {
	r := emailRequest{email: in.Text("email", api.Text{Required: true, Min: 1, Max: maxEmail})}
	if r.email == "" || len([]rune(r.email)) > maxEmail {
		return r, nil // said already
	}
	domain, err := address.Domain(r.email)
	if err != nil {
		in.Problem("email", err.Error())
	}
	r.domain = domain
	return r, nil
}

// checkEmail asks the project's own list, then the global one. The time is that
// of the evaluation: reading the project's list and searching both.
func checkEmail(own *burner.Store, call *api.Call, r emailRequest) *api.Job {
	var listed bool
	var spent time.Duration
	return &api.Job{
		Credits: call.Credits(1),
		Prefetch: func(ctx context.Context) (err error) {
			start := time.Now()
			listed, err = own.Lists(ctx, call.Project.ID, r.domain)
			spent = time.Since(start)
			return err
		},
		Run: func(context.Context) (*api.Result, error) {
			start := time.Now()
			source := sourceNone
			if listed {
				source = sourceCustom
			} else if _, ok := disposable.Find(r.domain); ok {
				source = sourceGlobal
			}
			spent += time.Since(start)
			return &api.Result{Data: emailResult{
				Email: r.email, Domain: r.domain, ValidSyntax: true, Disposable: source != sourceNone, Source: source,
				ExecutionTime: float64(spent.Microseconds()) / 1000,
			}}, nil
		},
	}
}
