"""Runs in the answer's sandbox: imports its modules and does with them what tests ask for."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eval_pipeline.coding.oracle.frames import Frames, Nonsense, channel_of
from eval_pipeline.coding.oracle.objects import Objects, operate

Request = dict[str, Any]


class Server:
    """Answers one request after the other, or many at once where an event loop runs."""

    def __init__(self, frames: Frames, objects: Objects) -> None:
        self._frames, self._objects = frames, objects
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def serve(self) -> None:
        """Until the other side has gone; an event loop here lasts as long as the one there."""
        request = self._frames.receive()
        while True:
            if request["loop"] is None:
                self._answer(request)
                request = self._frames.receive()
            else:
                request = asyncio.run(self._serve_loop(request))

    async def _serve_loop(self, first: Request) -> Request:
        """All requests of one event loop; gives the first that is not of it."""
        loop, number = asyncio.get_running_loop(), first["loop"]
        after: asyncio.Future[Request] = loop.create_future()
        self._take(first)

        def read(*, more: bool = True) -> None:
            try:
                if more:
                    self._frames.read_more()
                while not after.done() and (request := self._frames.buffered()):
                    self._take(request) if request["loop"] == number else after.set_result(request)
            except (EOFError, Nonsense):
                leave()

        read(more=False)
        loop.add_reader(self._frames.fileno(), read)
        try:
            return await after
        finally:
            loop.remove_reader(self._frames.fileno())

    def _take(self, request: Request) -> None:
        """Begins with a request, or cancels one that was begun."""
        if request["do"] != "cancel":
            self._tasks[request["id"]] = asyncio.create_task(self._answer_in_loop(request))
        elif task := self._tasks.get(request["id"]):
            task.cancel()

    def _answer(self, request: Request) -> None:
        try:
            self._reply(request, self._done(request))
        except BaseException as error:  # noqa: BLE001  (whatever an answer raises is its result)
            self._raised(request, error)

    async def _answer_in_loop(self, request: Request) -> None:
        try:
            result = self._done(request)
            self._reply(request, await result if request["wait"] else result)
        except BaseException as error:  # noqa: BLE001  (whatever an answer raises is its result)
            self._raised(request, error)
        finally:
            del self._tasks[request["id"]]

    def _done(self, request: Request) -> Any:
        target = self._objects.decode(request["on"])
        arguments = self._objects.decode(request["args"])
        named = self._objects.decode(request["named"])
        request["given"] = (arguments, named)
        name = request["name"]
        done: Mapping[str, Callable[[], Any]] = {
            "describe": self._objects.interface,
            "call": lambda: target(*arguments, **named),
            "method": lambda: getattr(target, name)(*arguments, **named),
            "get": lambda: getattr(target, name),
            "set": lambda: setattr(target, name, *arguments),
            "delete": lambda: delattr(target, name),
            "operate": lambda: operate(target, name, arguments),
            "await": lambda: target,
        }
        return done[request["do"]]()

    def _reply(self, request: Request, result: Any) -> None:
        if request["do"] == "describe":
            self._send(request, {"interface": result})
        else:
            self._send(request, {"value": self._objects.encode(result)})

    def _raised(self, request: Request, error: BaseException) -> None:
        cancelled = isinstance(error, asyncio.CancelledError)
        words = {"cancelled": True} if cancelled else {"raised": self._objects.encode_error(error)}
        self._send(request, words)

    def _send(self, request: Request, words: dict[str, Any]) -> None:
        words |= {"id": request["id"], "classes": self._objects.new_classes()}
        if given := request.pop("given", None):
            words |= self._changed(request, *given)
        self._frames.send(words)

    def _changed(
        self, request: Request, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What the call made of its arguments, if it is not what they were."""
        now = [self._objects.encode(list(arguments)), self._objects.encode(dict(named))]
        return {} if now == [request["args"], request["named"]] else {"changed": now}


def leave() -> None:
    """At once, whatever threads or handlers an answer has left behind."""
    sys.stdout.flush()
    os._exit(0)


def main(interface: Mapping[str, Sequence[str]]) -> None:
    """Imports the modules and serves; that they can not be imported is the first answer."""
    frames = Frames(channel_of(os.environ))
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        server = Server(frames, Objects(interface))
    except BaseException as error:
        frames.send({"broken": f"{type(error).__name__}: {error}"})
        raise
    frames.send({"ready": True})
    try:
        server.serve()
    except (EOFError, OSError):
        leave()


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    del sys.argv[1:]
    main(asked)
