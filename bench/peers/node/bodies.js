// The producer's side: the bodies the harness wrote, pushed in calls of BATCH, the way each queue's bulk call is meant.
// Reports the time from the first call to the last acknowledgement; connecting and reading the file come before it.
'use strict';
const fs = require('fs');

const BATCH = 1000;
const port = Number(process.env.BENCH_PORT);

async function push(bulk) {
  const bodies = fs.readFileSync(process.env.BENCH_BODIES, 'ascii').split('\n', Number(process.env.BENCH_JOBS));
  const start = process.hrtime.bigint();
  for (let at = 0; at < bodies.length; at += BATCH) await bulk(bodies.slice(at, at + BATCH));
  console.log(JSON.stringify({ push_s: Number(process.hrtime.bigint() - start) / 1e9 }));
}

module.exports = { port, push };
