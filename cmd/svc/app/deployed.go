package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"svcapi/shared/credit"
)

// Deployed is what is known of the stack that was deployed, apart from its tables and secrets.
type Deployed struct {
	BaseURL string
	Prices  map[string]int64 // by operation
}

// PricedOperations in the order of the price list.
var PricedOperations = []string{
	credit.SMS, credit.BurnerEmailShield, credit.VPNShield, credit.Location, credit.Barcode, credit.QRCode, credit.PDF,
}

// PriceParameter is the stack's parameter for an operation's price: burner_email_shield is PriceBurnerEmailShield.
func PriceParameter(operation string) string {
	parts := strings.Split(operation, "_")
	for i, part := range parts {
		parts[i] = strings.ToUpper(part[:1]) + part[1:]
	}
	return "Price" + strings.Join(parts, "")
}

// describeStack asks CloudFormation for the stack's address and prices.
func describeStack(ctx context.Context, cfg aws.Config, name string) (Deployed, error) {
	out, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return Deployed{}, fmt.Errorf("read the stack %s (--stack names another): %w", name, err)
	}
	if len(out.Stacks) == 0 {
		return Deployed{}, fmt.Errorf("there is no stack %s", name)
	}
	d := Deployed{Prices: map[string]int64{}}
	for _, o := range out.Stacks[0].Outputs {
		if aws.ToString(o.OutputKey) == "BaseUrl" {
			d.BaseURL = aws.ToString(o.OutputValue)
		}
	}
	for _, p := range out.Stacks[0].Parameters {
		for _, operation := range PricedOperations {
			if PriceParameter(operation) != aws.ToString(p.ParameterKey) {
				continue
			}
			if d.Prices[operation], err = strconv.ParseInt(aws.ToString(p.ParameterValue), 10, 64); err != nil {
				return Deployed{}, fmt.Errorf("parameter %s of the stack: %w", aws.ToString(p.ParameterKey), err)
			}
		}
	}
	return d, nil
}
