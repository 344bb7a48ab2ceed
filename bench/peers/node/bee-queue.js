'use strict';
const Queue = require('bee-queue');
const { port, push } = require('./bodies');
const { tally, CONCURRENCY } = require('./tally');

async function main(verb) {
  const queue = new Queue('bench', {
    redis: { host: '127.0.0.1', port },
    isWorker: verb === 'work',
    getEvents: false, // nobody listens: what its documentation advises for producers and plain workers
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
  });
  await queue.ready();
  if (verb === 'work') {
    const count = tally();
    queue.process(CONCURRENCY, async job => count(job.data));
  } else {
    await push(async bodies => {
      const failed = await queue.saveAll(bodies.map(body => queue.createJob(body)));
      if (failed.size > 0) throw new Error(`${failed.size} jobs were not saved`);
    });
    await queue.close();
  }
}

main(process.argv[2]).catch(error => { console.error(error.message); process.exit(1); });
