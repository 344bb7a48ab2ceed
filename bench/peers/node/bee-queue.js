'use strict';
const Queue = require('bee-queue');
const { port, push, produce } = require('./bodies');
const { handler, CONCURRENCY, RETRIES } = require('./jobs');

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
    const handle = handler();
    queue.process(CONCURRENCY, async job => handle(job.data, RETRIES - job.options.retries));
    return;
  }
  if (verb === 'produce') {
    await produce(body => queue.createJob(body).retries(RETRIES).save());
  } else {
    await push(async bodies => {
      const failed = await queue.saveAll(bodies.map(body => queue.createJob(body)));
      if (failed.size > 0) throw new Error(`${failed.size} jobs were not saved`);
    });
  }
  await queue.close();
}

main(process.argv[2]).catch(error => { console.error(error.message); process.exit(1); });
