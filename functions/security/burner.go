package main

import (
	"context"
	"time"

	"svcapi/functions/security/disposable"
	"svcapi/shared/api"
	"svcapi/shared/burner"
	"svcapi/shared/credit"
	"svcapi/shared/project"
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

// The values of source name the list that holds the domain or one of its parents.
const (
	sourceCustom = "custom"
	sourceGlobal = "global"
	sourceNone   = "none"
)

// burnerEmailShield returns the operation openapi.yaml#checkBurnerEmail, which calls no vendor. The security integration must
// be active, and decides only about the mode.
func burnerEmailShield(lists *burner.Store) api.Route {
	return &api.Operation[emailRequest]{
		Name: "burner_email_shield", Method: "POST", Path: "/api/v1/security/burner-email-shield",
		Kind: project.Security, Price: credit.BurnerEmailShield,
		Decode: decodeEmail,
		Prepare: func(_ context.Context, call *api.Call, r emailRequest) (*api.Job, error) {
			return checkEmail(lists, call, r), nil
		},
	}
}

const maxEmail = 255 // characters (openapi.yaml#BurnerEmailRequest)

func decodeEmail(in *api.Input) (emailRequest, error) {
	r := emailRequest{email: in.Text("email", api.Text{Required: true, Min: 1, Max: maxEmail})}
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

// checkEmail searches the list of the project, then the global list. ExecutionTime is the time of both searches.
func checkEmail(lists *burner.Store, call *api.Call, r emailRequest) *api.Job {
	var listed bool
	var spent time.Duration
	return &api.Job{
		Credits: call.Credits(1),
		Prefetch: func(ctx context.Context) (err error) {
			start := time.Now()
			listed, err = lists.Lists(ctx, call.Project.ID, r.domain)
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
