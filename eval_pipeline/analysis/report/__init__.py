"""The report on why a model failed in a run."""

from eval_pipeline.analysis.report.files import ReportError
from eval_pipeline.analysis.report.write import Written, edited_in, write_report

__all__ = ["ReportError", "Written", "edited_in", "write_report"]
