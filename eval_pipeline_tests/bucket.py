"""An S3-compatible server on loopback, in a process of its own: that of moto."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from urllib.error import URLError
from urllib.request import Request, urlopen

from pydantic import SecretStr

from eval_pipeline.store.place import Place
from eval_pipeline_tests.webserver import a_free_port, wait_for

BUCKET, SECRET = "results", "a-secret-of-the-store"
_SERVE = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"


@dataclass(frozen=True)
class Bucket:
    """Where it is, and the process that serves it."""

    address: str
    process: "subprocess.Popen[bytes]"

    @property
    def variables(self) -> dict[str, str]:
        """What opens it, as people have it in their environment."""
        return {
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": self.address,
            "AWS_ALLOW_HTTP": "true",
        }

    def place(self) -> Place:
        """A part of the bucket that nobody has used yet."""
        options = {name: SecretStr(value) for name, value in self.variables.items()}
        return Place(f"s3://{BUCKET}/{token_hex(6)}", options)

    def put(self, key: str, content: bytes = b"") -> None:
        """Puts an object there past our own code, so that its name may be any."""
        url = f"{self.address}/{BUCKET}{'/' + key if key else ''}"
        urlopen(Request(url, data=content, method="PUT"), timeout=10).close()


@contextmanager
def bucket(folder: Path) -> Iterator[Bucket]:
    """Serves an empty one; with the block the server ends, if it has not been killed by then."""
    port = a_free_port()
    with (folder / "bucket.log").open("wb") as log:
        command = [sys.executable, "-W", "ignore", "-c", _SERVE, str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    found = Bucket(f"http://127.0.0.1:{port}", process)

    def made() -> bool:
        try:
            found.put("")
        except (URLError, ConnectionError):
            return False
        return True

    try:
        wait_for(made)
        yield found
    finally:
        process.kill()
        process.wait()
