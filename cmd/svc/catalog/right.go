package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"svcapi/cmd/svc/app"
	sms "svcapi/functions/sms/vendors"
	"svcapi/shared/project"
)

// CheckRight simulates the call that the role of the function signs for a Managed integration without secrets.
// CheckRight returns what the role lacks, and an error where that cannot be found out.
func CheckRight(ctx context.Context, s *app.Stack, i project.Integration) (lacks string, err error) {
	o, err := Find(string(i.Kind), i.Vendor)
	action := o.Spec.ManagedAction
	if err != nil || s.Local || i.Mode != project.Managed || action == "" {
		return "", err
	}
	role, err := functionRole(ctx, s, i.Kind)
	if err != nil {
		return "", err
	}
	parsed, _ := arn.Parse(role) // as Lambda returns it
	identity := sms.OriginationIdentity(i.Settings, s.AWS.Region, parsed)
	if identity == "" {
		return "", errors.New("sender_id is a phone number, and no ARN of one")
	}
	out, err := iam.NewFromConfig(s.AWS).SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
		PolicySourceArn: &role, ActionNames: []string{action}, ResourceArns: []string{identity},
	})
	if err != nil {
		return "", err
	}
	for _, result := range out.EvaluationResults {
		if result.EvalDecision == types.PolicyEvaluationDecisionTypeAllowed {
			return "", nil
		}
	}
	return fmt.Sprintf("the role of the function lacks %s on %s: SmsOriginationIdentityArns does not name it, "+
		"or another policy denies it", action, identity), nil
}

// NotChecked is the beginning of the text about a right that CheckRight could not check.
const NotChecked = "the right of the function's role was not checked: "

// functionRole returns the ARN of the role of the function that serves a kind.
func functionRole(ctx context.Context, s *app.Stack, kind project.Kind) (string, error) {
	stack, err := s.DeployedStack(ctx)
	if err != nil {
		return "", err
	}
	name := stack.Outputs[strings.ToUpper(string(kind[:1]))+string(kind[1:])+"FunctionArn"]
	if name == "" {
		return "", errors.New("the stack " + s.StackName() + " does not name the function " + string(kind))
	}
	in := &lambda.GetFunctionConfigurationInput{FunctionName: &name}
	function, err := lambda.NewFromConfig(s.AWS).GetFunctionConfiguration(ctx, in)
	if err != nil {
		return "", err
	}
	return aws.ToString(function.Role), nil
}
