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
	"svcapi/shared/upstream"
)

// CheckRight simulates the call that the function's role signs for a Managed integration without secret fields, and returns
// an error where the role lacks the right. The text is the reason why CheckRight could not check the right.
func CheckRight(ctx context.Context, s *app.Stack, account upstream.Account) (unchecked string, err error) {
	i := account.Integration
	o, err := Find(string(i.Kind), i.Vendor)
	if err != nil || s.Local || i.Mode != project.Managed || o.Spec.ManagedAction == "" {
		return "", err
	}
	role, err := functionRole(ctx, s, i.Kind)
	if err != nil {
		return "the right of the function's role was not checked: " + err.Error(), nil
	}
	parsed, _ := arn.Parse(role) // as Lambda returns it
	identity := sms.OriginationIdentity(account.Settings, s.AWS.Region, parsed)
	if identity == "" {
		return "the right of the function's role was not checked: sender_id is a phone number, and no ARN of one", nil
	}
	out, err := iam.NewFromConfig(s.AWS).SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
		PolicySourceArn: &role, ActionNames: []string{o.Spec.ManagedAction}, ResourceArns: []string{identity},
	})
	if err != nil {
		return "the right of the function's role was not checked: " + err.Error(), nil
	}
	for _, result := range out.EvaluationResults {
		if result.EvalDecision == types.PolicyEvaluationDecisionTypeAllowed {
			return "", nil
		}
	}
	return "", fmt.Errorf("the role of the function lacks %s on %s: SmsOriginationIdentityArns does not name it, or another policy denies it",
		o.Spec.ManagedAction, identity)
}

// functionRole returns the ARN of the role of the function that serves a kind.
func functionRole(ctx context.Context, s *app.Stack, kind project.Kind) (string, error) {
	stack, err := app.DescribeStack(ctx, s.AWS, s.StackName())
	if err != nil {
		return "", err
	}
	if stack != nil {
		for _, o := range stack.Outputs {
			if strings.EqualFold(aws.ToString(o.OutputKey), string(kind)+"FunctionArn") {
				function, err := lambda.NewFromConfig(s.AWS).GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: o.OutputValue})
				if err != nil {
					return "", err
				}
				return aws.ToString(function.Role), nil
			}
		}
	}
	return "", errors.New("the stack " + s.StackName() + " names no function for " + string(kind))
}
