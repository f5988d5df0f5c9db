"""Runs of Dagster's that were never executed, for what looks at its history."""

import dagster as dg
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)


def a_dagster_run(status: str, *, job: str = "evaluate", location: str = "here") -> dg.DagsterRun:
    """A run that was launched from a code location, and is of that status."""
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(location), "__repository__")
    origin = RemoteJobOrigin(repository, job)
    return dg.DagsterRun(job, status=dg.DagsterRunStatus(status), remote_job_origin=origin)
