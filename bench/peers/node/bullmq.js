'use strict';
const { Queue, Worker } = require('bullmq');
const { port, push } = require('./bodies');
const { tally, CONCURRENCY } = require('./tally');

async function main(verb) {
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  if (verb === 'work') {
    const count = tally();
    const worker = new Worker('bench', async job => count(job.data), { connection, concurrency: CONCURRENCY });
    worker.on('error', error => console.error(error.message));
  } else {
    const queue = new Queue('bench', { connection, defaultJobOptions: { removeOnComplete: true } });
    await queue.waitUntilReady();
    await push(bodies => queue.addBulk(bodies.map(data => ({ name: 'job', data }))));
    await queue.close();
  }
}

main(process.argv[2]).catch(error => { console.error(error.message); process.exit(1); });
