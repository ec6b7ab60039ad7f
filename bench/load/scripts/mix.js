// All operations at once, by their weights. The slow ones have a VU of their own and rest between two requests.
import { sleep } from 'k6';
import { common, draw, measure, measureAnchor, operations, operationsSummary, quick, slow, warm } from './client.js';

const thresholds = { breaches: ['count==0'], refused: ['count==0'] };
for (const o of operations) {
  thresholds['served_' + o.name] = ['count>0'];
}

const scenario = { executor: 'constant-vus', duration: `${__ENV.SECONDS}s`, gracefulStop: '40s' };

export const options = {
  ...common,
  thresholds,
  scenarios: {
    quick: { ...scenario, vus: Number(__ENV.VUS), exec: 'mixed' },
    slow: { ...scenario, vus: 1, exec: 'rested' },
  },
};

export function setup() {
  warm(Number(__ENV.VUS));
}

export function mixed() {
  if (Math.random() < 0.2) measureAnchor();
  measure(draw(quick));
}

export function rested() {
  measureAnchor();
  measure(draw(slow));
  sleep(0.5);
}

export const handleSummary = (data) => operationsSummary(data);
