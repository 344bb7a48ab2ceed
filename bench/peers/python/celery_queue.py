"""Celery with Redis as its broker and no result store; it acknowledges before the work, which is its default."""

import sys

from celery import Celery

import bodies
import jobs

app = Celery("bench", broker=bodies.URL)
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task(name="job", bind=True, max_retries=jobs.RETRIES)
def job(self, body: str) -> None:
    try:
        jobs.run(body, self.request.retries)
    except jobs.OnPurpose as error:
        raise self.retry(exc=error, countdown=0)


if __name__ == "__main__":
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
        push = bodies.produce if sys.argv[1:] == ["produce"] else bodies.push
        push(lambda body: job.apply_async((body,), producer=producer))
