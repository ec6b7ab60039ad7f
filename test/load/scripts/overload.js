// PHASE=calm: one client, then as many as keep the stack busy. PHASE=flood: RATE requests a second whatever becomes of
// them, then one client again.
import exec from 'k6/execution';
import { sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import { ask, common, draw, operations, quick, summary, warm } from './client.js';

const flooding = __ENV.PHASE === 'flood';
const seconds = Number(__ENV.SECONDS);
const calmSeconds = 5;

const took = {};
for (const name of ['calm', 'full', 'flood', 'served', 'turned_away', 'after']) took[name] = new Trend('took_' + name, true);
const answers = {};
for (const status of [200, 429, 500, 503]) answers[status] = new Counter('answers_' + status);
const busy = new Counter('busy'); // successes while the stack was kept busy
const late = new Trend('late', true); // how long after the flood an answer was no success, or slow

const one = { executor: 'constant-vus', vus: 1, gracefulStop: '40s' };

export const options = {
  ...common,
  thresholds: { breaches: ['count==0'] },
  scenarios: flooding ? {
    flood: {
      executor: 'constant-arrival-rate', exec: 'flood', rate: Number(__ENV.RATE), timeUnit: '1s', duration: `${seconds}s`,
      preAllocatedVUs: 600, maxVUs: 1500, gracefulStop: '40s',
    },
    after: { ...one, exec: 'after', startTime: `${seconds}s`, duration: '10s' },
  } : {
    calm: { ...one, exec: 'calm', duration: `${calmSeconds}s` },
    full: { ...one, exec: 'full', vus: Number(__ENV.VUS), startTime: `${calmSeconds}s`, duration: `${seconds}s` },
  },
};

export function setup() {
  warm(Number(__ENV.WARM));
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
  took.flood.add(a.ms);
  (a.ok ? took.served : took.turned_away).add(a.ms);
  if (answers[a.status]) answers[a.status].add(1);
}

export function after() {
  const a = ask(draw(quick));
  took.after.add(a.ms);
  const since = Date.now() - exec.scenario.startTime;
  if (!a.ok || a.ms > Number(__ENV.SLOW_MS)) late.add(since);
  sleep(Number(__ENV.PAUSE));
}

export const handleSummary = summary;
