// Calls every operation with the client package for TypeScript. Arguments: base URL, Client ID, Client Secret,
// Idempotency-Key.

import { createSvcClient } from "svc-api-client";

declare const process: { argv: string[]; exit(code: number): never };

const [baseUrl, clientId, clientSecret, key] = process.argv.slice(2);
const client = createSvcClient({ baseUrl, clientId, clientSecret });

function check(name: string, fine: boolean | undefined, response: Response, error: unknown) {
  if (response.status !== 200 || !fine) {
    console.error(name, response.status, JSON.stringify(error));
    process.exit(1);
  }
  console.log(name);
}

async function starts(blob: unknown, text: string) {
  return blob instanceof Blob && new TextDecoder("latin1").decode(await blob.slice(0, 8).arrayBuffer()).startsWith(text);
}

// @ts-expect-error: the document has no such method, so the types refuse the request
export const refused = () => client.POST("/sms/send", { body: { send_method: "none", to: "0771234567", message: "m" } });

async function main() {
  const body = { send_method: "single" as const, to: "0771234567", message: "Hello" };
  const busy = await client.POST("/sms/send", { body });
  if (busy.response.status !== 503) {
    console.error("an SMS without a key was repeated", busy.response.status);
    process.exit(1);
  }
  const sms = await client.POST("/sms/send", { body, params: { header: { "Idempotency-Key": key } } });
  check("sendSms", sms.data?.data.credits_charged === 10000, sms.response, sms.error);
  const balance = await client.POST("/sms/balance", { body: {} });
  check("getSmsBalance", balance.data?.data.source === "service_wallet", balance.response, balance.error);
  const reference = sms.data?.data.provider_response.reference ?? "";
  const status = await client.GET("/sms/status/{reference}", { params: { path: { reference } } });
  check("getSmsStatus", status.data?.data.reason === "vendor_has_no_status", status.response, status.error);
  const email = await client.POST("/security/burner-email-shield", { body: { email: "someone@mailinator.com" } });
  check("checkBurnerEmail", email.data?.data.is_disposable, email.response, email.error);
  const vpn = await client.POST("/security/vpn-shield", { body: { ip: "8.8.8.8" } });
  check("checkVpn", vpn.data?.data.ip_address === "8.8.8.8", vpn.response, vpn.error);
  const place = await client.POST("/location/lookup", { body: { ip: "8.8.8.8" } });
  check("lookUpLocation", typeof place.data?.data.country_code === "string", place.response, place.error);
  const barcode = await client.POST("/utilities/barcode/generate", { body: { data: "svc-api" } });
  check("generateBarcode", await starts(barcode.data, "\x89PNG"), barcode.response, barcode.error);
  const qr = await client.POST("/utilities/qrcode/generate", { body: { data: "svc-api" } });
  check("generateQrCode", await starts(qr.data, "\x89PNG"), qr.response, qr.error);
  const pdf = await client.POST("/utilities/pdf/generate", { body: { html: "<h1>Invoice</h1>" } });
  check("generatePdf", await starts(pdf.data, "%PDF-"), pdf.response, pdf.error);
  const stream = await client.POST("/utilities/pdf/stream", { body: { html: "<h1>Label</h1>", page_width: 100, page_height: 150, outline: true, password: "parcel", strict: true } });
  check("streamPdf", await starts(stream.data, "%PDF-"), stream.response, stream.error);
  const latest = await client.GET("/utility/currency/latest/{base}", { params: { path: { base: "USD" } } });
  check("getLatestRates", (latest.data?.data.rates.LKR ?? 0) > 0, latest.response, latest.error);
  const history = await client.GET("/utility/currency/history/{base}", {
    params: { path: { base: "USD" }, query: { from: new Date().toISOString().slice(0, 10), symbols: "LKR" } },
  });
  check("getRateHistory", (history.data?.data.days[0].rates.LKR ?? 0) > 0, history.response, history.error);
  const pair = await client.GET("/utility/currency/pair/{base}/{target}", {
    params: { path: { base: "USD", target: "LKR" }, query: { date: new Date().toISOString().slice(0, 10) } },
  });
  check("getPairRate", (pair.data?.data.rate ?? 0) > 0, pair.response, pair.error);
  const converted = await client.GET("/utility/currency/pair/{base}/{target}/{amount}", {
    params: { path: { base: "USD", target: "LKR", amount: "100" } },
  });
  check("convertPairRate", (converted.data?.data.conversion_result ?? 0) > 0, converted.response, converted.error);
  const codes = await client.GET("/utility/currency/codes");
  check("listCurrencyCodes", (codes.data?.data.count ?? 0) > 30, codes.response, codes.error);

  const refused = await client.POST("/utilities/barcode/generate", { body: { data: "" } });
  if (refused.response.status !== 422 || refused.error === undefined || !("details" in refused.error.error)) {
    console.error("an error", refused.response.status);
    process.exit(1);
  }
  console.log("an error");
}

void main();
