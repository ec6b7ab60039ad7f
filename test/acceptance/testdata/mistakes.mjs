// Sends the mistakes of TestMistakes (JSON on standard input) with fetch, and compares each response with the expected one.

import { isDeepStrictEqual } from "node:util";
import { text } from "node:stream/consumers";

for (const { name, url, method, header, body, ...want } of JSON.parse(await text(process.stdin))) {
  const response = await fetch(url, { method, headers: header, body: body || undefined });
  const content = await response.text();
  const error = response.status >= 400 ? JSON.parse(content).error : null;
  const got = { status: response.status, error, warnings: response.headers.get("X-SVC-Warnings") ?? "" };
  if (!isDeepStrictEqual(got, want)) {
    console.error(name, got);
    process.exit(1);
  }
}
