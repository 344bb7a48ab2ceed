// The worker's side: counts each job by the number at the head of its body, and writes the counts down now and then
// (bench/harness/tally.py tells the format). A write replaces the file as a whole.
'use strict';
const fs = require('fs');
const path = require('path');

const NUMBER_DIGITS = 10;

const number = body => Number(body.slice(0, NUMBER_DIGITS));

function tally() {
  const counts = new Uint8Array(Number(process.env.BENCH_JOBS));
  const file = path.join(process.env.BENCH_TALLY, `${process.pid}.tally`);
  let handled = 0, failed = 0, written = 0, first = 0n, last = 0n;

  setInterval(() => {
    if (handled + failed === written) return;
    written = handled + failed;
    const head = `{"handled":${handled},"failed":${failed},"first_ns":${first},"last_ns":${last}}\n`;
    fs.writeFileSync(`${file}.new`, Buffer.concat([Buffer.from(head), counts]));
    fs.renameSync(`${file}.new`, file);
  }, Number(process.env.BENCH_TALLY_MS));

  const count = body => {
    last = process.hrtime.bigint();
    if (handled === 0) first = last;
    handled += 1;
    const at = number(body);
    if (counts[at] < 255) counts[at] += 1;
  };
  return { count, fail: () => { failed += 1; } };
}

module.exports = { tally, number };
