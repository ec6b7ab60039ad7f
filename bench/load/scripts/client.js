// The scenarios send one row of operations.json at a time, validate the response by the contract and compare its time with
// the hello function's.
import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';

export const operations = JSON.parse(open('../operations.json'));

const baseURL = __ENV.BASE_URL;
const { credentials, prices } = JSON.parse(__ENV.PROJECTS);

export const breaches = new Counter('breaches'); // responses outside the contract
export const refused = new Counter('refused'); // responses within the contract that are no success
const charged = new Counter('charged'); // credits for the successes
const baselineTook = new Trend('took_baseline', true);

for (const o of operations) {
  o.method = o.method || 'POST';
  o.type = o.type || 'application/json';
  o.url = o.project ? baseURL + o.path : baseURL.replace(/\/api\/v1$/, '') + o.path;
  o.text = o.body ? JSON.stringify(o.body) : null;
  o.price = o.charges ? prices[o.charges] : 0;
  o.params = {
    tags: { name: o.name },
    timeout: '40s',
    responseType: o.begins ? 'binary' : 'text',
    headers: o.project
      ? { 'X-API-KEY': credentials[o.project].client_id, 'X-API-SECRET': credentials[o.project].client_secret, 'Content-Type': 'application/json' }
      : {},
  };
  o.expected = Object.entries(o.expect || {}).map(([path, value]) => [path.split('.'), JSON.stringify(value)]);
  const served = new Counter('served_' + o.name);
  o.succeeded = () => {
    served.add(1);
    charged.add(o.price);
  };
  o.took = new Trend('took_' + o.name, true);
  o.times = new Trend('times_' + o.name); // in multiples of the hello function's time at that moment
}

const followed = new Set(operations.map((o) => o.follows));

export const byName = Object.fromEntries(operations.map((o) => [o.name, o]));

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

// The codes of the refusals that load may cause.
const codes = {
  429: ['rate_limit_exceeded'],
  500: ['internal_error'],
  503: ['http_error', 'service_unavailable'],
};

function text(body) {
  return body instanceof ArrayBuffer ? String.fromCharCode.apply(null, new Uint8Array(body)) : body;
}

function parsed(body) {
  try {
    return JSON.parse(text(body)) || {};
  } catch (_) {
    return {};
  }
}

// breach returns why a response is outside the contract, and '' for a response within the contract.
function breach(o, a) {
  if (a.status === 0) return 'no response: ' + a.error;
  const id = a.headers['X-Svc-Request-Id'];
  if (!uuid.test(id)) return `X-SVC-Request-ID is ${id}`;
  if (a.status !== 200) {
    const envelope = parsed(a.body);
    const error = envelope.error || {};
    if (!(codes[a.status] || []).includes(error.code)) return `unexpected ${text(a.body)}`;
    if (envelope.success !== false || envelope.request_id !== id || !error.message) return `envelope ${text(a.body)}`;
    if (a.status === 429 && !(Number(a.headers['Retry-After']) >= 1)) return `Retry-After is ${a.headers['Retry-After']}`;
    return '';
  }
  if (a.headers['Content-Type'] !== o.type) return `Content-Type is ${a.headers['Content-Type']}`;
  if (o.begins) {
    const bytes = new Uint8Array(a.body);
    const length = o.streamed ? undefined : String(bytes.length); // a stream's length is not known at its beginning
    if (a.headers['Content-Length'] !== length) return `Content-Length is ${a.headers['Content-Length']} of ${bytes.length}`;
    return o.begins.every((b, i) => bytes[i] === b) ? '' : 'the body is no ' + o.type;
  }
  const envelope = parsed(a.body);
  if (envelope.success !== true || envelope.request_id !== id) return `envelope ${a.body}`;
  const charged = (envelope.data || {}).credits_charged;
  if (charged !== undefined && charged !== o.price) return `charged ${charged}`;
  for (const [path, want] of o.expected) {
    const got = JSON.stringify(path.reduce((value, name) => (value === null || value === undefined ? undefined : value[name]), envelope));
    if (got !== want) return `${path.join('.')} is ${got}`;
  }
  return '';
}

let complaints = 3; // of each VU
let reference; // of this VU's last send of a row that another row follows

// urlOf returns the URL of a row, with the reference of a send of the row that it follows.
const urlOf = (o) => o.url.replace('{reference}', reference);

// ask sends a request and counts its response. A row that follows another one sends that one first.
export function ask(o) {
  if (o.follows && !reference) return ask(byName[o.follows]);
  const a = http.request(o.method, urlOf(o), o.text, o.params);
  const wrong = breach(o, a);
  if (wrong) {
    breaches.add(1, { operation: o.name });
    if (complaints-- > 0) console.error(`${o.name}: ${a.status} ${wrong.slice(0, 500)}`);
  } else if (a.status === 200) {
    o.succeeded();
    if (followed.has(o.name)) reference = parsed(a.body).data.provider_response.reference;
  } else {
    refused.add(1, { operation: o.name, status: String(a.status) });
    if (!__ENV.OVERLOAD && complaints-- > 0) console.error(`${o.name}: ${a.status} ${text(a.body).slice(0, 500)}`);
  }
  return { ok: !wrong && a.status === 200, status: a.status, ms: a.timings.duration };
}

const baseline = { tags: { name: 'baseline' } };
const last = []; // this VU's last times of the hello function
const kept = 15;

// measureAnchor sends a request to the hello function behind the same kind of gateway.
export function measureAnchor() {
  const a = http.post(__ENV.BASELINE_URL, '{}', baseline);
  if (a.status !== 200) {
    breaches.add(1, { operation: 'baseline' });
    return;
  }
  baselineTook.add(a.timings.duration);
  last.push(a.timings.duration);
  if (last.length > kept) last.shift();
}

// measure sends a request and compares its time with the median of the hello function's last times.
export function measure(o) {
  const a = ask(o);
  if (!a.ok) return;
  o.took.add(a.ms);
  if (last.length > 2) o.times.add(a.ms / [...last].sort((x, y) => x - y)[last.length >> 1]);
}

// warm starts every function's processes, so that no time holds a cold start. The responses count.
export function warm(processes) {
  if (!processes) return;
  for (const o of operations) {
    if (o.follows) ask(byName[o.follows]);
    const requests = Array.from({ length: o.slow ? 2 : processes }, () => [o.method, urlOf(o), o.text, o.params]);
    for (const a of http.batch(requests)) {
      const wrong = breach(o, a);
      if (wrong || a.status !== 200) {
        breaches.add(1, { operation: o.name });
        console.error(`${o.name}: ${a.status} ${wrong.slice(0, 500)}`);
      } else {
        o.succeeded();
      }
    }
  }
}

// draw picks an operation of a list by its weight.
export function draw(list) {
  let at = Math.random() * list.reduce((sum, o) => sum + o.weight, 0);
  return list.find((o) => (at -= o.weight) < 0) || list[list.length - 1];
}

export const quick = operations.filter((o) => !o.slow);
export const slow = operations.filter((o) => o.slow);

// figure returns one figure of a metric; 0 where the metric has no samples.
export function figure(data, metric, name) {
  return ((data.metrics[metric] || {}).values || {})[name] || 0;
}

export const times = (data, metric, name) => figure(data, metric, name).toFixed(1);

export const took = (data, metric, name) => `${figure(data, metric, name).toFixed(1)} ms`;

// table aligns the cells of rows.
export function table(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((cells) => `${cells[i]}`.length)));
  return `\n${rows.map((cells) => cells.map((cell, i) => `${cell}`.padStart(widths[i])).join('  ')).join('\n')}\n`;
}

// summary prints the text and the thresholds that did not hold, and hands figures over to the program that started k6.
export function summary(data, text, figures) {
  const failed = Object.entries(data.metrics).flatMap(([metric, m]) => Object.entries(m.thresholds || {}).filter(([, result]) => !result.ok)
    .map(([threshold]) => `NOT MET: ${metric}: ${threshold}, ${JSON.stringify(m.values)}\n`));
  return { stdout: text + failed.join(''), [__ENV.SUMMARY]: JSON.stringify({ ...figures, charged: figure(data, 'charged', 'count') }) };
}

// operationsSummary prints the figures of each operation beside the hello function's. clients returns how many clients an
// operation had alone; without clients all operations ran at once.
export function operationsSummary(data, clients) {
  const row = (title, metric, vus, ratio) => {
    const n = figure(data, `took_${metric}`, 'count');
    return [title, vus, n, (n / Number(__ENV.SECONDS)).toFixed(1), ...['med', 'p(95)', 'p(99)'].map((name) => took(data, `took_${metric}`, name)), ...ratio];
  };
  const hello = row('hello', 'baseline', '', ['1.0', '']);
  if (clients) hello.splice(2, 2, '', ''); // hello was measured beside every operation: a sum has no meaning
  const count = (metric) => figure(data, metric, 'count');
  return summary(data, table([
    ['operation', 'clients', 'responses', 'a second', 'median', 'p95', 'p99', '× hello, median', 'p95'], hello,
    ...operations.map((o) => row(o.title, o.name, clients ? clients(o) : '', ['med', 'p(95)'].map((name) => times(data, `times_${o.name}`, name)))),
  ]) + `\n${count('http_reqs')} responses, ${count('breaches')} outside the contract, ${count('refused')} refused.\n`);
}

// common are the options of every script.
export const common = {
  batch: 32,
  batchPerHost: 32,
  systemTags: ['name', 'scenario'], // fewer cost less
  summaryTrendStats: ['count', 'min', 'med', 'p(95)', 'p(99)', 'max'],
  setupTimeout: '120s',
};
