'use strict';
const Queue = require('bull');
const { port, push, produce } = require('./bodies');
const { handler, CONCURRENCY, RETRIES } = require('./jobs');

async function main(verb) {
  const queue = new Queue('bench', {
    redis: { host: '127.0.0.1', port },
    defaultJobOptions: { removeOnComplete: true, attempts: RETRIES + 1 },
  });
  await queue.isReady();
  if (verb === 'work') {
    const handle = handler();
    queue.process(CONCURRENCY, async job => handle(job.data, job.attemptsMade));
    return;
  }
  if (verb === 'produce') await produce(body => queue.add('__default__', body));
  else await push(bodies => queue.addBulk(bodies.map(data => ({ data }))));
  await queue.close();
}

main(process.argv[2]).catch(error => { console.error(error.message); process.exit(1); });
