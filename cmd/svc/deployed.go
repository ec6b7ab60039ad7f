package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/spf13/cobra"

	"svcapi/shared/credit"
)

// deployed is what is known of the stack that was deployed, beside its tables and secrets.
type deployed struct {
	baseURL string
	prices  credit.Prices
}

// describeStack asks CloudFormation for the stack's address and prices.
func describeStack(ctx context.Context, cfg aws.Config, name string) (deployed, error) {
	out, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return deployed{}, fmt.Errorf("read the stack %s (--stack names another): %w", name, err)
	}
	if len(out.Stacks) == 0 {
		return deployed{}, fmt.Errorf("there is no stack %s", name)
	}
	d, parameters := deployed{}, map[string]string{}
	for _, o := range out.Stacks[0].Outputs {
		if aws.ToString(o.OutputKey) == "BaseUrl" {
			d.baseURL = aws.ToString(o.OutputValue)
		}
	}
	for _, p := range out.Stacks[0].Parameters {
		parameters[aws.ToString(p.ParameterKey)] = aws.ToString(p.ParameterValue)
	}
	d.prices, err = credit.ReadPrices(credit.FromParameters(parameters))
	return d, err
}

func (a *app) price() *cobra.Command {
	return group("price", "Show what operations cost", a.priceList())
}

type priceView struct {
	Operation string `json:"operation"`
	Credits   int64  `json:"credits"`
	USD       string `json:"usd"`
	Parameter string `json:"parameter"`
}

var errNoPrices = errors.New("the stack has no prices")

func (a *app) priceList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the prices of Managed operations; Manual ones, balance and currency are free",
		Args:  cobra.NoArgs,
		RunE: a.on(func(ctx context.Context, s *stack, _ []string) error {
			d, err := s.deployed(ctx)
			if err != nil {
				return err
			}
			views := []priceView{}
			t := table{header: []string{"OPERATION", "CREDITS", "USD", "PARAMETER"}}
			for _, p := range credit.PriceList() {
				price, known := d.prices[p.Operation]
				if !known {
					continue
				}
				v := priceView{p.Operation, price, dollars(price), p.Parameter}
				views = append(views, v)
				t.rows = append(t.rows, []string{v.Operation, grouped(price), v.USD, v.Parameter})
			}
			if len(views) == 0 {
				return errNoPrices
			}
			return a.print(views, t)
		}),
	}
}

// dollars writes credits as US dollars: 10000 is 0.01.
func dollars(credits int64) string {
	text := fmt.Sprintf("%d.%06d", credits/1_000_000, credits%1_000_000)
	text = strings.TrimRight(text, "0")
	if i := strings.IndexByte(text, '.'); len(text)-i < 3 {
		text += "00"[:3-(len(text)-i)]
	}
	return text
}
