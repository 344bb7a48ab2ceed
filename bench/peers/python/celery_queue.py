"""Celery with Redis as its broker and no result store; it acknowledges before the work, which is its default."""

from celery import Celery

import bodies
import tally

app = Celery("bench", broker=bodies.URL)
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task(name="job")
def job(body: str) -> None:
    tally.count(body)


if __name__ == "__main__":
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
        bodies.push(lambda body: job.apply_async((body,), producer=producer))
