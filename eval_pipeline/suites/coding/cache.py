"""What was graded before, by what was graded and how: the same files are not graded twice."""

import logging
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from eval_pipeline.journal.files import swap_in
from eval_pipeline.records.coding import GradedCode

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GradedFiles:
    """One grading on disk; it saves work and may be deleted at any time."""

    data: Path
    key: str

    @property
    def _path(self) -> Path:
        return self.data / "graded" / f"{self.key}.json"

    def read(self) -> GradedCode | None:
        """The grading, if there is one that can be read."""
        try:
            return GradedCode.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            log.warning("%s is not used: %s", self._path, error)
            return None

    def write(self, code: GradedCode) -> None:
        """Keeps it: whole, or not at all."""
        swap_in(self._path, code.model_dump_json().encode())
