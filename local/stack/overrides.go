package stack

import "maps"

// Overrides are the template's parameters that point functions at a stack that runs: those of a laptop, and where its
// engine, its secrets endpoint and its vendor sandbox are.
func Overrides(dynamoDBURL, secretsURL, sandboxURL string) map[string]string {
	overrides := maps.Clone(laptop)
	overrides["DynamoDbEndpointUrl"] = dynamoDBURL
	overrides["SecretsManagerEndpointUrl"] = secretsURL
	overrides["RatesEndpointUrl"] = sandboxURL
	return overrides
}
