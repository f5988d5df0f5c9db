"""Where a journal is shared: the address of an object store, and what opens it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, SecretStr

_ADDRESS = re.compile(
    r"(s3|gs|az|abfss?)://[\w.-]+(@[\w.-]+)?(/[\w.=+-]+)*/?|file://(/[\w.=+-]+)+/?"
)
SECRETS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_CLIENT_SECRET",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
"""The variables with keys of stores: kept like all keys."""
VARIABLES = (
    *SECRETS,
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "GOOGLE_SERVICE_ACCOUNT",
)
"""All that is handed to the library from .env; what it reads of the environment besides, it may."""


def _an_address(url: str) -> str:
    # An address that is not as it is to be may have a key in it: it is never repeated.
    if not _ADDRESS.fullmatch(url) or ".." in url or _has_password(url):
        raise ValueError(
            "must be like s3://bucket/prefix, gs://…, az://… or file:///folder, without keys: "
            "those belong into .env or into the environment"
        )
    return url.rstrip("/")


def _has_password(url: str) -> bool:
    """Only addresses of Azure name a container before an @."""
    return "@" in url and not url.startswith("abfs")


StoreAddress = Annotated[str, AfterValidator(_an_address)]


@dataclass(frozen=True)
class Place:
    """A store's address, which is safe to show, and its options, which are not."""

    url: str
    options: Mapping[str, SecretStr] = field(default_factory=dict, repr=False, compare=False)
