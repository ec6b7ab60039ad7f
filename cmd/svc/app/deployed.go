package app

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"svcapi/shared/credit"
)

// Deployed holds the base URL and the prices of a deployed stack.
type Deployed struct {
	BaseURL string
	Prices  credit.Prices
}

// describeStack reads the base URL and the prices of a stack from CloudFormation.
func describeStack(ctx context.Context, cfg aws.Config, name string) (Deployed, error) {
	out, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return Deployed{}, fmt.Errorf("read the stack %s (--stack names another): %w", name, err)
	}
	if len(out.Stacks) == 0 {
		return Deployed{}, fmt.Errorf("there is no stack %s", name)
	}
	d, parameters := Deployed{}, map[string]string{}
	for _, o := range out.Stacks[0].Outputs {
		if aws.ToString(o.OutputKey) == "BaseUrl" {
			d.BaseURL = aws.ToString(o.OutputValue)
		}
	}
	for _, p := range out.Stacks[0].Parameters {
		parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	d.Prices, err = credit.ReadPrices(credit.FromParameters(parameters))
	return d, err
}
