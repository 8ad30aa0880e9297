"""Lets a test in TypeScript use the Python client as its own (../python-bridge.ts). Lines of JSON: an operation comes on stdin, and its result goes to
stdout. Meanwhile the client asks for what the test plays: answers, time, and the copy. Between two messages no time passes."""
import base64
import itertools
import json
import sys

import pledgeview


class Stopped(BaseException):
    """What the test was asked for has thrown: it knows the error."""


class Response:
    def __init__(self, said):
        self.status_code, self.headers, self.url, self.said = said["status"], said["headers"], said["url"], said
        self.history = [self] if said["redirected"] else []

    def iter_bytes(self):
        return iter([base64.b64decode(self.said["body"])])

    def close(self):
        pass


class Lost(Exception):
    pass


class Bridge:
    failures = (Lost, OSError)
    time = 0

    def __init__(self, number, random):
        self.number, self.random = number, lambda: random

    def ask(self, what, **details):
        print(json.dumps({"ask": what, "client": self.number, **details}), flush=True)
        said = json.loads(sys.stdin.readline())
        Bridge.time = said["now"]
        if said.get("stop"):
            raise Stopped
        return said.get("answer")

    def now(self):
        return Bridge.time

    def sleep(self, ms):
        self.ask("sleep", ms=ms)

    def fetch(self, url, headers, ms_max):
        said = self.ask("fetch", url=url, headers=headers)
        if "lost" in said:
            raise Lost(said["lost"])
        return Response(said)


class Store:
    def __init__(self, bridge, number):
        self.ask, self.number = bridge.ask, number

    def load(self):
        return self.ask("load", store=self.number)

    def save(self, watermark):
        self.ask("save", store=self.number, watermark=watermark)

    def __eq__(self, other):
        return self.number == other.number


def plain(value):
    if isinstance(value, pledgeview.Change):
        return {"type": value.type, **({"project": value.project} if value.project else {"id": value.id})}
    if isinstance(value, pledgeview.ListAnswer):
        return {"data": value.data, "pagination": value.pagination, "asOf": value.as_of, "snapshotId": value.snapshot_id}
    if isinstance(value, pledgeview.Verdict):
        rest = {"lacking": value.lacking, "leftOver": value.left_over, "stale": value.stale}
        return {"asOf": value.as_of, "wasEqual": value.was_equal, **rest}
    return value


clients, iterations, stores, numbers = {}, {}, {}, itertools.count()


def arguments(client, options):
    """What stands in the options for a function or a store of the test."""
    bridge, given = client.runtime, dict(options)
    if "store" in given:
        given["store"] = stores.setdefault(given["store"], Store(bridge, given["store"]))
    if given.pop("asks_held", False):
        given["held"] = lambda: bridge.ask("held")
    if given.pop("asks_apply", False):
        given["apply"] = lambda change: bridge.ask("apply", change=plain(change))
    if given.pop("asks_outage", False):
        given["on_outage"] = lambda error: bridge.ask("outage", error=described(error))
    if given.pop("starts", False):
        given["start"] = client.whole_copy
    return given


def described(error):
    return {"code": error.code, "message": str(error), "status": error.status, "requestId": error.request_id, "retryAfterMs": error.retry_after_ms}


def run(operation):
    kind, number = operation["operation"], operation["number"]
    if kind == "create":
        bridge = Bridge(number, operation["random"])
        clients[number] = pledgeview.Client(runtime=bridge, **operation["options"])
        return {}
    if kind == "call":
        method = getattr(clients[number], operation["method"])
        return {"value": plain(method(*operation["positional"], **arguments(clients[number], operation["options"])))}
    if kind == "iterate":
        method = getattr(clients[number], operation["method"])
        iteration = next(numbers)
        iterations[iteration] = method(**arguments(clients[number], operation["options"]))
        return {"value": iteration}
    if kind == "next":
        try:
            return {"value": plain(next(iterations[number]))}
        except StopIteration as end:
            return {"done": plain(end.value)}
    iterations.pop(number).close()
    return {}


for line in sys.stdin:
    operation = json.loads(line)
    Bridge.time = operation["now"]
    try:
        result = run(operation)
    except Stopped:
        result = {"stopped": True}
    except pledgeview.ClientError as error:
        result = {"error": described(error)}
    except ValueError as error:
        result = {"range": str(error)}
    print(json.dumps({"result": result}), flush=True)
