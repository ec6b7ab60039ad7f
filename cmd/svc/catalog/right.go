package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"svcapi/cmd/svc/app"
	sms "svcapi/functions/sms/vendors"
	"svcapi/shared/project"
)

// CheckRight compares the origination identity of a Managed integration without secrets with the identities that the
// stack lets the function's role send from. CheckRight returns what the role lacks, and an error where that cannot be
// found out.
func CheckRight(ctx context.Context, s *app.Stack, i project.Integration) (lacks string, err error) {
	o, err := Find(string(i.Kind), i.Vendor)
	action := o.Spec.ManagedAction
	if err != nil || s.Local || i.Mode != project.Managed || action == "" {
		return "", err
	}
	stack, err := s.DeployedStack(ctx)
	if err != nil {
		return "", err
	}
	function, err := arn.Parse(stack.Outputs["SmsFunctionArn"])
	if err != nil {
		return "", errors.New("the stack " + s.StackName() + " does not name the function " + string(i.Kind))
	}
	identity := sms.OriginationIdentity(i.Settings, s.AWS.Region, function)
	if identity == "" {
		return "", errors.New("sender_id is a phone number, and no ARN of one")
	}
	if slices.Contains(strings.Split(stack.Parameters["SmsOriginationIdentityArns"], ","), identity) {
		return "", nil
	}
	return fmt.Sprintf("the role of the function lacks %s on %s: SmsOriginationIdentityArns does not name it",
		action, identity), nil
}

// NotChecked is the beginning of the text about a right that CheckRight could not check.
const NotChecked = "the right of the function's role was not checked: "
