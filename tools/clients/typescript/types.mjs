// Writes the types of openapi.yaml for the client: `node types.mjs DOCUMENT > api.ts`. A binary body, which is a Blob, is
// unknown: openapi-fetch would turn the type Blob into one without methods.
import fs from "node:fs";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const binary = ts.factory.createKeywordTypeNode(ts.SyntaxKind.UnknownKeyword);
const tree = await openapiTS(pathToFileURL(process.argv[2]), {
  transform: (schema) => (schema.format === "binary" ? binary : undefined),
});
fs.writeSync(1, astToString(tree));
