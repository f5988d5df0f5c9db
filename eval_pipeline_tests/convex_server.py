"""What a Convex backend is asked, and when: an HTTP server that takes every deployment.

It runs no functions. It knows as much of the protocol as Convex's own command line needs to be
content, and what it says of a deployment is what a test has put into it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

CONFIG = {"config": {"functions": "convex/"}, "moduleHashes": [], "nodeDependencies": []}
NOTHING: dict[str, Any] = {"added": [], "removed": []}
PUSHED: dict[str, Any] = {
    "environmentVariables": {},
    "externalDepsId": None,
    "componentDefinitionPackages": {},
    "appAuth": [],
    "analysis": {},
    "app": {
        "definitionPath": "",
        "componentPath": "",
        "args": {},
        "childComponents": {},
        "httpRoutes": {"httpModuleRoutes": None, "mounts": []},
        "exports": {},
    },
    "schemaChange": {"allocatedComponentIds": {}, "schemaIds": {}},
}
DEPLOYING = {
    "/api/get_config_hashes": CONFIG,
    "/api/deploy2/evaluate_schema": {
        "componentSchemaEvaluations": {},
        "newComponentDefinitions": [],
    },
    "/api/deploy2/evaluate_push": {"schemaChange": PUSHED["schemaChange"]},
    "/api/deploy2/start_push": PUSHED,
    "/api/deploy2/wait_for_schema": {"type": "complete"},
    "/api/deploy2/finish_push": {"authDiff": NOTHING, "definitionDiffs": {}, "componentDiffs": {}},
}


@dataclass
class Server:
    """What was asked, in order, and what functions say."""

    url: str = ""
    says: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Path of the request, name of the function, and header `authorization`."""

    def names(self) -> list[str]:
        return [name or path for path, name, _ in self.asked]

    def keys_of(self, name: str) -> set[str]:
        return {key for path, called, key in self.asked if name in (path, called)}

    def answer(self, path: str, body: bytes, key: str) -> tuple[int, Any]:
        if path in DEPLOYING:
            self.asked.append((path, "", key))
            return 200, DEPLOYING[path]
        if path == "/api/run_test_function":
            self.asked.append((path, "", json.loads(body)["adminKey"]))
            return 200, {"status": "success", "value": 7, "logLines": []}
        if path not in ("/api/query", "/api/mutation", "/api/action"):
            self.asked.append((path, "", key))
            return (404, "not here") if path.startswith("/api/") else (202, "heard")
        name = json.loads(body)["path"]
        self.asked.append((path, name, key))
        if name in self.says:
            return 200, {"status": "success", "value": self.says[name], "logLines": []}
        return 200, {"status": "error", "errorMessage": f"Could not find public function {name}"}


@contextmanager
def a_server(**says: Any) -> Iterator[Server]:
    """A backend on loopback, until the block ends."""
    server = Server(says=says)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, said = server.answer(self.path, body, self.headers.get("authorization", ""))
            text = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Keeps still."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
