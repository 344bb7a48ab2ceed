'use strict';
const Queue = require('bull');
const { port, push } = require('./bodies');
const { tally, CONCURRENCY } = require('./tally');

async function main(verb) {
  const queue = new Queue('bench', {
    redis: { host: '127.0.0.1', port },
    defaultJobOptions: { removeOnComplete: true },
  });
  await queue.isReady();
  if (verb === 'work') {
    const count = tally();
    queue.process(CONCURRENCY, async job => count(job.data));
  } else {
    await push(bodies => queue.addBulk(bodies.map(data => ({ data }))));
    await queue.close();
  }
}

main(process.argv[2]).catch(error => { console.error(error.message); process.exit(1); });
