// Package catalog holds what the commands of svc share about vendors: the list of vendors, their accounts, and the
// integrations of projects.
package catalog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"svcapi/cmd/svc/app"
	sms "svcapi/functions/sms/vendors"
	lookup "svcapi/shared/iplookup/vendors"
	"svcapi/shared/project"
	"svcapi/shared/project/admin"
	"svcapi/shared/rates/sources"
	"svcapi/shared/upstream"
)

// Offer is one vendor that integrations of a kind can name.
type Offer struct {
	Kind project.Kind
	Spec upstream.Spec
	// BuiltIn vendors are the service itself, its database files or the test values, and have no endpoint.
	BuiltIn bool
}

// Offers returns every vendor of the tables of the functions.
func Offers() []Offer {
	var all []Offer
	for _, v := range sms.NewTable(aws.Config{}) {
		all = append(all, Offer{Kind: project.SMS, Spec: v.Spec, BuiltIn: v.Name == project.TestVendor})
	}
	for _, v := range lookup.Risks() {
		all = append(all, Offer{Kind: project.Security, Spec: v.Spec, BuiltIn: v.OnDisk()})
	}
	for _, v := range lookup.Places() {
		all = append(all, Offer{Kind: project.Location, Spec: v.Spec, BuiltIn: v.OnDisk()})
	}
	for _, v := range sources.Table() {
		all = append(all, Offer{Kind: project.Currency, Spec: v.Spec})
	}
	for _, kind := range []project.Kind{project.Barcode, project.PDF} {
		all = append(all, Offer{Kind: kind, Spec: upstream.Spec{Name: "builtin", Title: "Built in"}, BuiltIn: true})
	}
	return all
}

// ValidateKind returns an error for an unknown kind.
func ValidateKind(kind string) error {
	if kind == "qrcode" || kind == "qr" {
		return app.Usagef("QR codes belong to the kind barcode, and there is no kind %q", kind)
	}
	if kinds := admin.Kinds(); !slices.Contains(kinds, project.Kind(kind)) {
		return app.Usagef("unknown kind %q; the kinds are %s", kind,
			join(kinds, func(k project.Kind) string { return string(k) }))
	}
	return nil
}

// Find returns the vendor that the operator names, or the only vendor of a kind without a name.
func Find(kind, vendor string) (Offer, error) {
	if err := ValidateKind(kind); err != nil {
		return Offer{}, err
	}
	offers := slices.DeleteFunc(Offers(), func(o Offer) bool { return string(o.Kind) != kind })
	for _, o := range offers {
		if o.Spec.Name == vendor || vendor == "" && len(offers) == 1 {
			return o, nil
		}
	}
	problem := "missing VENDOR"
	if vendor != "" {
		problem = fmt.Sprintf("no vendor %q", vendor)
	}
	names := join(offers, func(o Offer) string { return o.Spec.Name })
	return Offer{}, app.Usagef("%s; the vendors of kind %s are %s", problem, kind, names)
}

// FindByArguments returns the vendor of the arguments KIND and VENDOR. VENDOR may be absent.
func FindByArguments(args []string) (Offer, error) { return Find(args[0], strings.Join(args[1:], "")) }

// Values returns the kinds, and the vendors of the kind before them or of SMS, for "svc completion".
func Values() map[string]func(before []string) []string {
	return map[string]func([]string) []string{
		"KIND": func([]string) []string {
			return strings.Split(join(admin.Kinds(), func(k project.Kind) string { return string(k) }), ", ")
		},
		"VENDOR": func(before []string) (vendors []string) {
			kind := project.Kind(before[len(before)-1])
			for _, o := range Offers() {
				if o.Kind == kind || o.Kind == project.SMS && ValidateKind(string(kind)) != nil {
					vendors = append(vendors, o.Spec.Name)
				}
			}
			return vendors
		},
	}
}

// Settings returns the vendor's settings and the endpoint, which is a setting of every remote vendor.
func (o Offer) Settings() []upstream.Field {
	if o.BuiltIn || find(o.Spec.Settings, upstream.EndpointSetting) != nil {
		return o.Spec.Settings
	}
	return append(slices.Clip(o.Spec.Settings),
		upstream.Field{Name: upstream.EndpointSetting, Description: "base URL instead of the vendor's, https"})
}

// Apply returns settings with the changes of NAME=VALUE texts.
func (o Offer) Apply(before map[string]string, given []string) (map[string]string, error) {
	after := map[string]string{}
	maps.Copy(after, before)
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, app.Usagef("--setting is NAME=VALUE, not %q", text)
		}
		field := find(o.Settings(), name)
		if field == nil && find(o.Spec.Secrets, name) != nil {
			return nil, app.Usagef("%s is a secret field: give it at the prompt or with --secrets, never as an argument", name)
		}
		if field == nil {
			return nil, app.Usagef("%s has no setting %q; it has %s", o.Spec.Title, name, names(o.Settings()))
		}
		if value != "" && field.Pattern != "" && !regexp.MustCompile(field.Pattern).MatchString(value) {
			return nil, app.Usagef("%s cannot be %q; it is: %s", name, value, field.Description)
		}
		if after[name] = value; value == "" {
			delete(after, name)
		}
	}
	return after, nil
}

// WithSandbox adds the sandbox's endpoint to settings without an endpoint on the local stack, and reports whether the
// endpoint was added.
func (o Offer) WithSandbox(s *app.Stack, settings map[string]string) (map[string]string, bool) {
	if s.Sandbox == "" || o.BuiltIn || settings[upstream.EndpointSetting] != "" {
		return settings, false
	}
	with := map[string]string{}
	maps.Copy(with, settings)
	with[upstream.EndpointSetting] = s.Sandbox + "/" + o.Spec.Name
	return with, true
}

// find returns the field with that name, or nil.
func find(fields []upstream.Field, name string) *upstream.Field {
	if at := slices.IndexFunc(fields, func(f upstream.Field) bool { return f.Name == name }); at >= 0 {
		return &fields[at]
	}
	return nil
}

func names(fields []upstream.Field) string {
	return join(fields, func(f upstream.Field) string { return f.Name })
}

func join[T any](values []T, text func(T) string) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = text(value)
	}
	return strings.Join(texts, ", ")
}
