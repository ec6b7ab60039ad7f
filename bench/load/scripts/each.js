// Each operation alone, one after the other, beside the hello function.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { byName, common, measure, measureAnchor, operations, operationsSummary, warm } from './client.js';

const seconds = Number(__ENV.SECONDS);

const thresholds = { breaches: ['count==0'], refused: ['count==0'] };
for (const o of operations) {
  thresholds['served_' + o.name] = ['count>0'];
  thresholds['times_' + o.name] = [`med<${o.most.median}`, `p(95)<${o.most.p95}`];
}

export const options = {
  ...common,
  thresholds,
  scenarios: Object.fromEntries(operations.map((o, i) => [o.name, {
    executor: 'constant-vus', vus: o.vus, startTime: `${i * (seconds + 1)}s`, duration: `${seconds}s`, gracefulStop: '40s',
  }])),
};

export function setup() {
  warm(4);
}

export default function () {
  const o = byName[exec.scenario.name];
  measureAnchor();
  measure(o);
  sleep(o.pause || 0); // below the route's own limit
}

export const handleSummary = (data) => operationsSummary(data, (o) => o.vus);
