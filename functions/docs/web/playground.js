// The playground of one operation: builds a request, sends it as the playground and shows what comes back.

import { credentials } from "./credentials.js";
import { ask, copyable, copyButton, element, grouped, uniqueID } from "./dom.js";
import { sendPlan } from "./units.js";

const smsPrice = Number(document.body.dataset.smsPrice);
const responseTimeout = 40_000; // milliseconds; the API responds within 29 s

// Headers that the playground sets by itself.
const ownHeaders = ["X-ENV", "X-Confirm-Send"];

/** The section of an operation of the document. */
export function playground({ spec, operation, path, method, baseURL }) {
  const title = element("h5", { textContent: "Playground" });
  const section = element("section", { className: "playground", "aria-label": `Playground: ${operation.summary}` }, title);
  const form = element("div", { className: "request" });
  const request = fields(form, spec, operation, path, method);
  const note = element("p", { className: "note", textContent: notes[operation.operationId] ?? "", hidden: !notes[operation.operationId] });
  const place = element("div", { className: "response" }, element("p", { className: "waiting", textContent: "The response appears here." }));
  const status = element("p", { className: "status", role: "status" });
  const send = element("button", { type: "button", className: "primary send", textContent: "Send" });
  send.addEventListener("click", async () => {
    if (send.getAttribute("aria-disabled") === "true") return;
    send.setAttribute("aria-disabled", "true"); // not disabled: it would lose the focus
    try {
      await run(request(), operation, baseURL, status, place);
    } finally {
      send.setAttribute("aria-disabled", "false");
    }
  });
  form.append(note, element("div", { className: "buttons" }, send, copyButton("Copy as curl", () => curl(request(), baseURL))));
  section.append(form, element("div", {}, status, place));
  return section;
}

const notes = {
  sendSms: "You are asked before anything is sent.",
  generatePdf: "The playground asks for Base64 and shows the PDF here.",
  streamPdf: "The playground asks for Base64 and shows the PDF here.",
};

/** Adds the operation's fields to the section. The result is a function that reads them as a request. */
function fields(section, spec, operation, path, method) {
  const inputs = [];
  const headers = []; // they come last: few need them
  for (const reference of operation.parameters ?? []) {
    const parameter = resolve(spec, reference);
    if (parameter.in === "header" && ownHeaders.includes(parameter.name)) continue;
    const input = element("input", { id: uniqueID("field"), type: "text", autocomplete: "off", spellcheck: false });
    if (parameter.in === "path") input.value = firstExample(parameter) ?? "";
    inputs.push({ parameter, input });
    const optional = parameter.required ? "" : " (optional)";
    const row = [element("label", { for: input.id, textContent: parameter.name + optional }), input];
    if (parameter.in !== "header") section.append(...row);
    else headers.push(...row);
  }
  const examples = bodyExamples(spec, operation);
  let body = null;
  if (examples) {
    body = element("textarea", { id: uniqueID("body"), spellcheck: false, autocomplete: "off" });
    const fill = (value) => {
      body.value = JSON.stringify(value, null, 2);
      body.rows = Math.min(16, body.value.split("\n").length + 1);
    };
    fill(examples[0].value);
    if (examples.length > 1) {
      const choice = element("select", { id: uniqueID("example"), onchange: () => fill(examples[choice.selectedIndex].value) });
      choice.append(...examples.map((example) => element("option", { textContent: example.summary })));
      section.append(element("label", { for: choice.id, textContent: "Example" }), choice);
    }
    section.append(element("label", { for: body.id, textContent: "Body (JSON)" }), body);
  }
  section.append(...headers);
  return () => {
    const made = { method: method.toUpperCase(), path, headers: { "X-ENV": "development" }, body: null };
    const query = new URLSearchParams();
    for (const { parameter, input } of inputs) {
      if (parameter.in === "path") made.path = made.path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      else if (parameter.in === "query" && input.value !== "") query.set(parameter.name, input.value);
      else if (input.value !== "") made.headers[parameter.name] = input.value;
    }
    if (query.size > 0) made.path += `?${query}`;
    if (body) {
      made.headers["Content-Type"] = "application/json";
      made.body = forThePlayground(operation, body.value);
    }
    return made;
  };
}

function resolve(spec, value) {
  if (!value?.$ref) return value;
  return resolve(spec, value.$ref.slice(2).split("/").reduce((inner, key) => inner[key], spec));
}

const firstExample = (of) => of.example ?? Object.values(of.examples ?? {})[0]?.value ?? of.schema?.example;

function bodyExamples(spec, operation) {
  const content = resolve(spec, operation.requestBody)?.content["application/json"];
  if (!content) return null;
  const named = Object.values(content.examples ?? {}).map((example) => resolve(spec, example));
  return named.length > 0 ? named : [{ summary: "", value: content.example ?? {} }];
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The body as it is sent: a PDF always as Base64. A text that is no JSON is sent as it is, for the API to judge. */
function forThePlayground(operation, text) {
  const value = parse(text);
  if (!["generatePdf", "streamPdf"].includes(operation.operationId) || value === null || typeof value !== "object" || Array.isArray(value)) return text;
  return JSON.stringify({ ...value, response_type: "base64" }, null, 2);
}

const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The request for a terminal, with placeholders for the credentials: the secret does not leave the page. */
function curl(request, baseURL) {
  const words = [`curl -sS ${shell(baseURL + request.path)}`, "-H 'X-API-KEY: <API_KEY>'", "-H 'X-API-SECRET: <API_SECRET>'"];
  for (const [name, value] of Object.entries(request.headers)) words.push(`-H ${shell(`${name}: ${value}`)}`);
  if (request.body !== null) words.push(`-d ${shell(request.body)}`);
  return words.join(" \\\n  ");
}

/** Asks about an SMS. False: it is not to be sent. Nothing is asked where nothing would be sent. */
async function confirmed(request) {
  const plan = sendPlan(parse(request.body));
  if (!plan) return true;
  const shown = plan.recipients.slice(0, 10);
  const more = plan.recipients.length - shown.length;
  document.getElementById("confirmation-recipients").textContent =
    `${grouped(plan.recipients.length)}: ${shown.join(", ")}${more > 0 ? ` and ${grouped(more)} more` : ""}`;
  document.getElementById("confirmation-units").textContent = grouped(plan.units);
  document.getElementById("confirmation-price").textContent =
    `${grouped(plan.units * smsPrice)} credits on a Managed integration (${grouped(smsPrice)} a unit), 0 on a Manual (BYOK) one`;
  if (!(await ask(document.getElementById("confirmation")))) return false;
  request.headers["X-Confirm-Send"] = "true";
  return true;
}

const kept = new Map(); // addresses of the pictures and PDFs shown, by the place where they are

/** Frees what an earlier response held. */
function clear(place) {
  place.replaceChildren();
  for (const url of kept.get(place) ?? []) URL.revokeObjectURL(url);
  kept.set(place, []);
}

async function run(request, operation, baseURL, status, place) {
  const known = await credentials();
  if (!known) {
    status.textContent = "Enter development credentials to send a request.";
    return;
  }
  if (operation.operationId === "sendSms" && !(await confirmed(request))) {
    status.textContent = "Not sent.";
    return;
  }
  clear(place);
  status.className = "status";
  status.textContent = "Sending…";
  const began = performance.now();
  let response, content;
  try {
    response = await fetch(baseURL + request.path, {
      method: request.method,
      headers: { ...request.headers, "X-API-KEY": known.id, "X-API-SECRET": known.secret, "X-SVC-Client": "playground" },
      body: request.body,
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(responseTimeout),
    });
    content = await response.blob();
  } catch (error) {
    status.classList.add("failed");
    status.textContent = `No response: ${error.message}.${operation.operationId === "sendSms" ? " The SMS may have been sent: do not repeat it." : ""}`;
    return;
  }
  const elapsed = Math.round(performance.now() - began);
  const envelope = response.headers.get("Content-Type")?.startsWith("application/json") ? parse(await content.text()) : undefined;
  status.classList.add(response.ok ? "succeeded" : "failed");
  status.textContent = `${response.status} ${reasons[response.status] ?? ""}${refusal(response, envelope, known)}`;
  place.append(facts(response, operation, envelope, elapsed), ...shown(content, envelope, place, response.headers.get("Content-Type")));
}

/** Why the API refused the credentials: in its own words, and where they look right, that they may be those of production. */
function refusal(response, envelope, known) {
  if (response.status !== 401) return "";
  const formed = known.id.startsWith("svc_") && known.secret.startsWith("svcs_");
  const hint = formed ? "Only development credentials work here." : "A Client ID begins with svc_, a Client Secret with svcs_.";
  return `. ${envelope?.error?.message ?? ""} ${hint}`;
}

const reasons = {
  200: "OK", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict",
  413: "Content Too Large", 422: "Unprocessable Content", 428: "Precondition Required", 429: "Too Many Requests",
  500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
};

function facts(response, operation, envelope, elapsed) {
  const list = element("dl");
  const add = (name, value, className = "") => value && list.append(element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value, className })));
  add("Time", `${grouped(elapsed)} ms`);
  add("Credits", charged(response, operation, envelope));
  add("Message", envelope?.error?.message);
  for (const [name, value] of Object.entries(envelope?.error?.details ?? {})) add(`details.${name}`, [value].flat().join(" "));
  add("Request ID", response.headers.get("X-SVC-Request-ID"), "id");
  add("Warnings", response.headers.get("X-SVC-Warnings"));
  add("Retry after", response.headers.get("Retry-After") && `${response.headers.get("Retry-After")} s`);
  add("Replayed", response.headers.get("Idempotency-Replayed"));
  return list;
}

/** What the response says about its price, or the price list. */
function charged(response, operation, envelope) {
  const price = operation["x-svc-credits"] ?? 0;
  if (envelope?.data?.credits_charged !== undefined) return grouped(envelope.data.credits_charged);
  if (operation.operationId === "sendSms" && response.status >= 502) return "0, or the price if the outcome is uncertain";
  if (!response.ok || price === 0) return "0";
  return `${grouped(price)} on a Managed integration, 0 on a Manual (BYOK) one`;
}

/** The body of the response: a picture, a PDF, or JSON. */
function shown(content, envelope, owner, type) {
  const address = (blob) => {
    const url = URL.createObjectURL(blob);
    kept.get(owner).push(url);
    return url;
  };
  const download = (url, name) => element("a", { href: url, download: name, className: "download", textContent: `Download ${name}` });
  if (type?.startsWith("image/")) {
    const url = address(content);
    const name = type.startsWith("image/png") ? "code.png" : "code.svg";
    return [element("img", { src: url, alt: "The generated code" }), download(url, name)];
  }
  if (envelope?.data?.media_type === "application/pdf") {
    const bytes = Uint8Array.from(atob(envelope.data.data), (character) => character.charCodeAt(0));
    const url = address(new Blob([bytes], { type: "application/pdf" }));
    const short = structuredClone(envelope);
    short.data.data = `${short.data.data.slice(0, 40)}… (${grouped(envelope.data.data.length)} characters)`;
    const inline = navigator.pdfViewerEnabled
      ? element("iframe", { src: url, title: "The generated PDF" })
      : element("p", { textContent: "This browser does not show PDFs in a page." });
    return [inline, download(url, "document.pdf"), json(short)];
  }
  return [envelope === undefined ? element("p", { textContent: "The response is not JSON." }) : json(envelope)];
}

function json(value) {
  const place = element("div", {}, element("pre", { tabIndex: 0, "aria-label": "Body of the response" }, element("code", { textContent: JSON.stringify(value, null, 2) })));
  copyable(place.firstChild);
  return place;
}
