// PHASE=calm: one client, then as many as keep the stack busy. PHASE=flood: TIMES × CARRIES requests a second, without
// waiting for responses, then one client again.
import exec from 'k6/execution';
import { sleep } from 'k6';
import { Counter, Rate, Trend } from 'k6/metrics';
import { ask, common, draw, figure, operations, quick, summary, table, took as printed, warm } from './client.js';

const flooding = __ENV.PHASE === 'flood';
const seconds = Number(__ENV.SECONDS);
const carries = Number(__ENV.CARRIES);
const calmSeconds = 5;
const statuses = [200, 429, 500, 503];

const took = {};
for (const name of ['calm', 'full', 'flood', 'served', 'turned_away', 'after']) took[name] = new Trend('took_' + name, true);
const responses = {};
for (const status of statuses) responses[status] = new Counter('responses_' + status);
const sent = new Counter('sent');
const expected = new Rate('refused_by_the_wall'); // of the refusals
const busy = new Counter('busy'); // successes while the stack was kept busy
const alone = new Counter('after'); // responses to the one client after the flood
const late = new Trend('late', true); // how long after the flood a response was no success, or slow

const one = { executor: 'constant-vus', vus: 1, gracefulStop: '40s' };

export const options = {
  ...common,
  thresholds: flooding ? {
    breaches: ['count==0'],
    sent: [`count>=${0.8 * __ENV.TIMES * carries * seconds}`], // a slow machine offers less than a flood
    refused_by_the_wall: ['rate>0.5'],
    responses_200: ['count>0'],
    took_flood: ['p(95)<=2000', 'max<=15000'],
    after: ['count>0'],
    late: ['max<=5000'],
  } : { breaches: ['count==0'], refused: ['count==0'] },
  scenarios: flooding ? {
    flood: {
      executor: 'constant-arrival-rate', exec: 'flood', rate: __ENV.TIMES * carries, timeUnit: '1s', duration: `${seconds}s`,
      preAllocatedVUs: 600, maxVUs: 1500, gracefulStop: '40s',
    },
    after: { ...one, exec: 'after', startTime: `${seconds}s`, duration: '10s' },
  } : {
    calm: { ...one, exec: 'calm', duration: `${calmSeconds}s` },
    full: { ...one, exec: 'full', vus: Number(__ENV.VUS), startTime: `${calmSeconds}s`, duration: `${seconds}s` },
  },
};

export function setup() {
  if (!flooding) warm(Number(__ENV.VUS));
}

export function calm() {
  took.calm.add(ask(draw(quick)).ms);
}

export function full() {
  const a = ask(draw(operations));
  took.full.add(a.ms);
  if (a.ok) busy.add(1);
}

export function flood() {
  const a = ask(draw(operations));
  sent.add(1);
  took.flood.add(a.ms);
  (a.ok ? took.served : took.turned_away).add(a.ms);
  if (responses[a.status]) responses[a.status].add(1);
  if (a.status !== 200 && responses[a.status]) expected.add(a.status === Number(__ENV.STATUS));
}

export function after() {
  const a = ask(draw(quick));
  alone.add(1);
  took.after.add(a.ms);
  const since = Date.now() - exec.scenario.startTime;
  if (!a.ok || a.ms > Number(__ENV.SLOW_MS)) late.add(since);
  sleep(Number(__ENV.PAUSE));
}

export function handleSummary(data) {
  const count = (metric) => figure(data, metric, 'count');
  if (!flooding) {
    return summary(data, `\nOne client: p95 ${printed(data, 'took_calm', 'p(95)')}. ${__ENV.VUS} clients: ${Math.floor(count('busy') / seconds)} responses a second, `
      + `median ${printed(data, 'took_full', 'med')}, p95 ${printed(data, 'took_full', 'p(95)')}.\n`, {
      capacity: count('busy') / seconds, // successes a second
      slow_ms: Math.max(3 * figure(data, 'took_calm', 'p(95)'), 250), // a response of the flood that takes longer is slow
    });
  }
  return summary(data, table([
    ['first in the way', 'sent a second', '× what it carries', ...statuses, 'refused: median', 'p95', 'served: median', 'p95', 'slowest', 'back after'],
    [__ENV.WALL, (count('sent') / seconds).toFixed(0), (count('sent') / seconds / carries).toFixed(1), ...statuses.map((status) => count(`responses_${status}`)),
      ...['turned_away', 'served'].flatMap((name) => ['med', 'p(95)'].map((of) => printed(data, `took_${name}`, of))),
      printed(data, 'took_flood', 'max'), `${(figure(data, 'late', 'max') / 1000).toFixed(1)} s`],
  ]));
}
