"""dramatiq with its Redis broker, as its guide sets it up; a message is acknowledged after the work."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker

import bodies
import tally

broker = RedisBroker(url=bodies.URL)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench")
def job(body: str) -> None:
    tally.count(body)


if __name__ == "__main__":
    broker.client.ping()
    bodies.push(job.send)
