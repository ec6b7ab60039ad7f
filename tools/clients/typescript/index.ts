import createClient, { type Client } from "openapi-fetch";
import type { paths } from "./api.js";

export type { components, operations, paths } from "./api.js";

export interface Options {
  /** The root of the API. It ends in /api/v1. */
  baseUrl: string;
  clientId: string;
  clientSecret: string;
  /** The value of X-ENV; dev by default. */
  environment?: "dev" | "prod";
  /** The number of attempts of a request, the first included; 3 by default. */
  attempts?: number;
}

/** The API ends a request after 29 seconds, and a stream after 60. */
const timeoutMilliseconds = 65_000;
/** The longest pause, in seconds. A response with a longer Retry-After goes to the caller. */
const longestPause = 60;
const repeatable = new Set([409, 429, 500, 502, 503, 504]);

/** Returns a client whose requests follow the retry rules of fetchWithRetries. */
export function createSvcClient({ baseUrl, clientId, clientSecret, environment = "dev", attempts }: Options): Client<paths> {
  const client = createClient<paths>({
    baseUrl,
    headers: { "X-API-KEY": clientId, "X-API-SECRET": clientSecret, "X-ENV": environment },
    fetch: (request) => fetchWithRetries(request, attempts),
  });
  client.use({ onResponse: ({ response, options }) => (options.parseAs === "json" ? parseByType(response) : undefined) });
  return client;
}

/** Makes openapi-fetch read a body that is no JSON by its Content-Type: an SVG as text, a PDF or PNG as a Blob. */
async function parseByType(response: Response): Promise<Response | undefined> {
  const type = response.headers.get("Content-Type") ?? "";
  if (!response.ok || type.includes("json")) {
    return undefined;
  }
  const data = type.includes("xml") ? await response.text() : await response.blob();
  const headers = new Headers(response.headers);
  headers.set("Content-Length", "1"); // a body without a length would be parsed as JSON
  const parsed = new Response(null, { status: response.status, headers });
  return Object.defineProperty(parsed, "json", { value: async () => data });
}

/**
 * Sends a request, and repeats the request after 409, 429, 5xx and a lost connection, after the seconds of Retry-After or
 * else after 1, 2, 4 seconds. An SMS without an Idempotency-Key is never repeated: it could be sent twice. A response with
 * Idempotency-Replayed is final.
 */
export async function fetchWithRetries(request: Request, attempts = 3): Promise<Response> {
  const once = new URL(request.url).pathname.endsWith("/sms/send") && !request.headers.has("Idempotency-Key");
  for (let attempt = 1; ; attempt++) {
    const last = once || attempt >= attempts;
    let pause = 2 ** (attempt - 1);
    try {
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMilliseconds)]);
      const response = await fetch(request.clone(), { signal });
      pause = Number(response.headers.get("Retry-After") ?? pause);
      const final = !repeatable.has(response.status) || response.headers.has("Idempotency-Replayed");
      if (last || final || !(pause <= longestPause)) {
        return response;
      }
      await response.body?.cancel();
    } catch (error) {
      if (last || request.signal.aborted) {
        throw error;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
  }
}
