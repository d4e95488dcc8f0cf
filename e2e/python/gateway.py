"""The official Python client of gRPC through the gateway of a running cluster.

GRPC_ADDR, ROCKETMQ_BIN and NAMESRV_ADDR say where. Every test is a function; what came of it is told in
the lines of `go test -json`. With an argument only tests run whose name holds it.
"""

import json
import os
import subprocess
import sys
import threading
import time
import traceback

from rocketmq import (ClientConfiguration, ConsumeResult, Credentials, FilterExpression, Message,
                      MessageListener, Producer, PushConsumer, SimpleConsumer)

# Long enough for a busy computer: nothing waits for it unless something is broken.
LIMIT = 90
COUNT = 50
RUN = time.time_ns() % 1_000_000_000
numbers = iter(range(1_000_000))
opened = []


def unique(what):
    return f"e2e-python-{what}-{RUN}-{next(numbers)}"


def admin(*arguments):
    subprocess.run([os.environ["ROCKETMQ_BIN"], "admin", *arguments], check=True, capture_output=True)


def new_topic(kind):
    topic = unique("topic")
    admin("topic", "create", topic, "-q", "4", "-a", f"message.type={kind}")
    return topic


def new_group(ordered="false"):
    group = unique("group")
    admin("group", "create", group, "--ordered", ordered)
    return group


def configuration():
    return ClientConfiguration(os.environ["GRPC_ADDR"], Credentials(), request_timeout=10)


def started(client):
    client.startup()
    opened.append(client)
    return client


def producer(topic):
    return started(Producer(configuration(), (topic,)))


def simple(group, topic, expression=None):
    """A consumer whose group has begun: what is sent from now on is received."""
    consumer = started(SimpleConsumer(configuration(), group, {topic: expression or FilterExpression()}, await_duration=5))
    assert not consumer.receive(1, 15)
    return consumer


def message(topic, body, tag=None, group=None):
    it = Message()
    it.topic = topic
    it.body = body.encode()
    if tag:
        it.tag = tag
    if group:
        it.message_group = group
    return it


def receive(consumer, count, invisible=15):
    got, deadline = [], time.monotonic() + LIMIT
    while len(got) < count:
        assert time.monotonic() < deadline, f"{len(got)} of {count} messages came"
        for it in consumer.receive(32, invisible) or []:
            got.append(it)
            consumer.ack(it)
    return got


def wait_for(condition, what):
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT} s: {what}"
        time.sleep(0.05)


class Inbox(MessageListener):
    def __init__(self):
        self.lock = threading.Lock()
        self.messages = []

    def consume(self, message):
        with self.lock:
            self.messages.append((message.message_group, message.body.decode()))
        return ConsumeResult.SUCCESS


def test_a_message_comes_back_with_its_parts():
    topic, group = new_topic("NORMAL"), new_group()
    consumer = simple(group, topic)
    sent = message(topic, "body", tag="tag")
    sent.keys = "k1"
    sent.add_property("colour", "blue")
    receipt = producer(topic).send(sent)
    got = receive(consumer, 1)[0]
    assert got.message_id == receipt.message_id
    assert got.body == b"body" and got.tag == "tag"
    assert got.properties == {"colour": "blue"}, got.properties


def test_a_tag_filter_lets_only_its_messages_through():
    topic, group = new_topic("NORMAL"), new_group()
    consumer = simple(group, topic, FilterExpression("red"))
    sender = producer(topic)
    for tag in ("blue", "red"):
        sender.send(message(topic, tag, tag=tag))
    assert receive(consumer, 1)[0].body == b"red"


def test_a_push_consumer_gets_every_message():
    topic, group, inbox = new_topic("NORMAL"), new_group(), Inbox()
    simple(group, topic)
    started(PushConsumer(configuration(), group, inbox, {topic: FilterExpression()}))
    sender = producer(topic)
    sent = {f"m{i}" for i in range(COUNT)}
    for body in sorted(sent):
        sender.send(message(topic, body))
    wait_for(lambda: {body for _, body in inbox.messages} == sent, "every message")


def test_messages_of_a_group_come_in_order():
    topic, group, inbox = new_topic("FIFO"), new_group("true"), Inbox()
    simple(group, topic)
    started(PushConsumer(configuration(), group, inbox, {topic: FilterExpression()}))
    sender = producer(topic)
    for i in range(20):
        for name in ("a", "b"):
            sender.send(message(topic, str(i), group=name))
    wait_for(lambda: len(inbox.messages) >= 40, "every message")
    for name in ("a", "b"):
        assert [int(body) for group, body in inbox.messages if group == name] == list(range(20)), inbox.messages


def event(action, name, output=None):
    line = {"Action": action, "Test": name}
    if output:
        line["Output"] = output
    print(json.dumps(line), flush=True)


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    tests = [(name, it) for name, it in globals().items() if name.startswith("test_") and only in name]
    failed = False
    for name, test in tests:
        try:
            test()
            event("pass", name)
        except Exception:  # noqa: BLE001: every failure is a result
            failed = True
            event("output", name, traceback.format_exc())
            event("fail", name)
        while opened:
            opened.pop().shutdown()
    # Threads of the client may outlive its shutdown.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
