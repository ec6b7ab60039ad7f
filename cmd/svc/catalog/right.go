package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	cloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"svcapi/cmd/svc/app"
	sms "svcapi/functions/sms/vendors"
	"svcapi/shared/project"
)

// CheckRight simulates the call that the function's role signs for a Managed integration without secret fields, and returns
// an error where the role lacks the right. The text is the reason why CheckRight could not check the right.
func CheckRight(ctx context.Context, s *app.Stack, i project.Integration) (unchecked string, err error) {
	o, err := Find(string(i.Kind), i.Vendor)
	if err != nil || s.Local || i.Mode != project.Managed || o.Spec.ManagedAction == "" {
		return "", err
	}
	allowed, identity, err := simulate(ctx, s, i, o.Spec.ManagedAction)
	if err != nil {
		return "the right of the function's role was not checked: " + err.Error(), nil
	}
	if !allowed {
		err = fmt.Errorf("the role of the function lacks %s on %s: SmsOriginationIdentityArns does not name it, or another policy denies it",
			o.Spec.ManagedAction, identity)
	}
	return "", err
}

// simulate reports whether the role of an integration's function may execute an action on the origination identity.
func simulate(ctx context.Context, s *app.Stack, i project.Integration, action string) (allowed bool, identity string, err error) {
	role, err := functionRole(ctx, s, i.Kind)
	if err != nil {
		return false, "", err
	}
	parsed, _ := arn.Parse(role) // as Lambda returns it
	if identity = sms.OriginationIdentity(i.Settings, s.AWS.Region, parsed); identity == "" {
		return false, "", errors.New("sender_id is a phone number, and no ARN of one")
	}
	out, err := iam.NewFromConfig(s.AWS).SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
		PolicySourceArn: &role, ActionNames: []string{action}, ResourceArns: []string{identity},
	})
	return err == nil && len(out.EvaluationResults) == 1 && out.EvaluationResults[0].EvalDecision == types.PolicyEvaluationDecisionTypeAllowed, identity, err
}

// functionRole returns the ARN of the role of the function that serves a kind.
func functionRole(ctx context.Context, s *app.Stack, kind project.Kind) (string, error) {
	stack, err := app.DescribeStack(ctx, s.AWS, s.StackName())
	if err != nil {
		return "", err
	}
	if stack == nil {
		return "", errors.New("there is no stack " + s.StackName())
	}
	at := slices.IndexFunc(stack.Outputs, func(o cloudformation.Output) bool {
		return strings.EqualFold(aws.ToString(o.OutputKey), string(kind)+"FunctionArn")
	})
	if at < 0 {
		return "", errors.New("the stack " + s.StackName() + " does not name the function " + string(kind))
	}
	function, err := lambda.NewFromConfig(s.AWS).GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: stack.Outputs[at].OutputValue})
	if err != nil {
		return "", err
	}
	return aws.ToString(function.Role), nil
}
