package stack

import "maps"

// Overrides are the template's parameters that point functions at a stack that runs: those of a laptop, and where its
// engine and its secrets endpoint are.
func Overrides(dynamoDBURL, secretsURL string) map[string]string {
	overrides := maps.Clone(laptop)
	overrides["DynamoDbEndpointUrl"] = dynamoDBURL
	overrides["SecretsManagerEndpointUrl"] = secretsURL
	return overrides
}
