// The producer's side: the bodies the harness wrote, pushed in calls of BATCH, the way each queue's bulk call is meant,
// or one a call. Reports times around the calls alone; connecting and reading the file come before them.
'use strict';
const fs = require('fs');

const BATCH = 1000;
const GATE_MS = 5;
const port = Number(process.env.BENCH_PORT);

function bodies(first, count) {
  return fs.readFileSync(process.env.BENCH_BODIES, 'ascii').split('\n', first + count).slice(first);
}

async function push(bulk) {
  const all = bodies(0, Number(process.env.BENCH_JOBS));
  const start = process.hrtime.bigint();
  for (let at = 0; at < all.length; at += BATCH) await bulk(all.slice(at, at + BATCH));
  console.log(JSON.stringify({ push_s: Number(process.hrtime.bigint() - start) / 1e9 }));
}

// One a call, the next when the last is answered; begins when the harness opens the gate.
async function produce(single) {
  const share = bodies(Number(process.env.BENCH_FIRST), Number(process.env.BENCH_COUNT));
  fs.writeFileSync(process.env.BENCH_READY, '');
  while (!fs.existsSync(process.env.BENCH_GO)) await new Promise(resume => setTimeout(resume, GATE_MS));
  const begun = process.hrtime.bigint();
  for (const body of share) await single(body);
  console.log(`{"begun_ns":${begun},"ended_ns":${process.hrtime.bigint()}}`);
}

module.exports = { port, push, produce };
