"""dramatiq with its Redis broker, as its guide sets it up; a message is acknowledged after the work."""

import logging
import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import CurrentMessage

import bodies
import jobs

broker = RedisBroker(url=bodies.URL)
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)
logging.getLogger("dramatiq").setLevel(logging.CRITICAL)  # jobs that fail on purpose are no news


@dramatiq.actor(queue_name="bench", max_retries=jobs.RETRIES, min_backoff=1, max_backoff=1)
def job(body: str) -> None:
    failures = 0
    if jobs.RETRIES > 0:
        failures = CurrentMessage.get_current_message().options.get("retries", 0)
    jobs.run(body, failures)


if __name__ == "__main__":
    broker.client.ping()
    push = bodies.produce if sys.argv[1:] == ["produce"] else bodies.push
    push(job.send)
