'use strict';
const { Queue, Worker } = require('bullmq');
const { port, push, produce } = require('./bodies');
const { handler, CONCURRENCY, RETRIES } = require('./jobs');

async function main(verb) {
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
  if (verb === 'work') {
    const handle = handler();
    const worker = new Worker('bench', async job => handle(job.data, job.attemptsMade),
      { connection, concurrency: CONCURRENCY });
    worker.on('error', error => console.error(error.message));
    return;
  }
  const queue = new Queue('bench', {
    connection,
    defaultJobOptions: { removeOnComplete: true, attempts: RETRIES + 1 },
  });
  await queue.waitUntilReady();
  if (verb === 'produce') await produce(body => queue.add('job', body));
  else await push(bodies => queue.addBulk(bodies.map(data => ({ name: 'job', data }))));
  await queue.close();
}

main(process.argv[2]).catch(error => { console.error(error.message); process.exit(1); });
