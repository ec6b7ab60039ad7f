package sandbox

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
)

// The API user that the sandbox's Hutch BSMS accepts.
const (
	HutchUsername = "hutch-sandbox-user"
	HutchPassword = "hutch-sandbox-password"
)

// hutchState holds the tokens that the vendor has issued.
type hutchState struct {
	mu     sync.Mutex
	tokens map[string]bool
}

// hutch simulates Hutch BSMS' API v1: a login for a token, then JSON with recipients joined by commas.
func hutch() vendor {
	h := &hutchState{tokens: map[string]bool{}}
	return vendor{
		name:     "hutch",
		secrets:  []string{"username", "password", "accessToken", "refreshToken"},
		accepted: []string{HutchUsername, HutchPassword},
		routes:   []route{{"POST /api/login", h.login}, {"POST /api/sendsms", h.send}},
		unknown:  hutchError(http.StatusNotFound, "Not Found"),
	}
}

func hutchError(status int, message string) response {
	return jsonResponse(status, object{"message": message})
}

func (h *hutchState) login(r *request) result {
	var in struct{ Username, Password string }
	valid := r.json(&in) && in.Username == HutchUsername && in.Password == HutchPassword
	refusal := hutchError(http.StatusUnauthorized, "Bad credentials")
	token := "sandbox." + rand.Text()
	if valid {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.tokens[token] = true
	}
	return result{
		operation: "login",
		problems:  []problem{{!valid || r.Header.Get("X-API-VERSION") != "v1", refusal}},
		responses: responses{
			Accepted: success(object{"accessToken": token, "refreshToken": "sandbox." + rand.Text()}),
			Rejected: refusal, CredentialsRefused: refusal,
		},
	}
}

func (h *hutchState) send(r *request) result {
	var in struct{ CampaignName, Mask, Numbers, Content string }
	valid := r.json(&in)
	to := split(in.Numbers)
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	h.mu.Lock()
	authorized := h.tokens[token]
	h.mu.Unlock()
	tokenRefused := hutchError(http.StatusUnauthorized, "Token is invalid or has expired")
	wrong := mismatch(elevenDigits, to)
	return result{
		operation: "send", to: to,
		problems: []problem{
			{!authorized, tokenRefused},
			{r.Header.Get("X-API-VERSION") != "v1", hutchError(http.StatusBadRequest, "X-API-VERSION is missing")},
			{!valid || len(to) == 0 || in.Content == "" || in.CampaignName == "", hutchError(http.StatusBadRequest, "Invalid request")},
			{wrong != "", hutchError(http.StatusBadRequest, "Invalid number "+wrong)},
			{in.Mask == "" || len(in.Mask) > 11, hutchError(http.StatusBadRequest, "Invalid mask")},
		},
		responses: responses{
			Accepted:           success(object{"serverRef": messageID()}),
			Rejected:           hutchError(http.StatusBadRequest, "Mask is not approved"),
			CredentialsRefused: hutchError(http.StatusForbidden, "The account may not send"),
			TokenRefused:       tokenRefused,
		},
	}
}
