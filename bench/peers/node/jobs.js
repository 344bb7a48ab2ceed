// What a job does, by BENCH_KIND: nothing, burn a core for a millisecond, wait for ten, or fail the first two times if
// its number ends in 0. It counts when it is finished.
'use strict';
const { tally, number } = require('./tally');

const kind = process.env.BENCH_KIND || 'idle';
const CONCURRENCY = Number(process.env.BENCH_CONCURRENCY || 100);
const RETRIES = kind === 'fail' ? 2 : 0;
const BURN_NS = 1e6, WAIT_MS = 10;

// Steps of work and not a time: what a job loses to others it has to make up for.
function burn(steps) {
  let state = steps | 1;
  for (let step = 0; step < steps; step += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
  }
  return state;
}

// How many steps take that long on a core of their own: the best of several tries.
function stepsIn(nanos) {
  const steps = 1e6;
  let best = Infinity;
  for (let attempt = 0; attempt < 30; attempt += 1) {
    const start = process.hrtime.bigint();
    burn(steps);
    best = Math.min(best, Number(process.hrtime.bigint() - start));
  }
  return Math.round(steps * nanos / best);
}

// The handler: a body, and how often it has failed before.
function handler() {
  const { count, fail } = tally();
  const steps = kind === 'burn' ? stepsIn(BURN_NS) : 0;
  return async (body, failures) => {
    if (kind === 'burn') burn(steps);
    if (kind === 'wait') await new Promise(resume => setTimeout(resume, WAIT_MS));
    if (kind === 'fail' && number(body) % 10 === 0 && failures < RETRIES) {
      fail();
      throw new Error('it fails on purpose');
    }
    count(body);
  };
}

module.exports = { handler, CONCURRENCY, RETRIES };
