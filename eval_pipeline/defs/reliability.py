"""What is shown of the judges' reliability: in the UI, and as a file in reports/."""

from collections.abc import Sequence

import dagster as dg

from eval_pipeline.defs.metadata import listed
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.records import now
from eval_pipeline.results.reliability import OWN_FAMILY
from eval_pipeline.results.tables.reliability import Report
from eval_pipeline.settings import Settings
from eval_pipeline.stages.workers import Tally

REPORT = "judge_reliability.md"
MOST_WARNINGS = 10


def write_report(
    warehouse: WarehouseResource, settings: Settings, tallies: Sequence[Tally], told: Sequence[str]
) -> Report:
    """Reads what was measured and writes the report about it."""
    warnings = [warning for tally in tallies for warning in tally.warnings]
    with warehouse.get_connection() as db:
        report = Report.of(db, [*told, *warnings])
    report.write(settings.reports / REPORT, now())
    return report


def reported(
    report: Report, settings: Settings
) -> dict[str, dg.MarkdownMetadataValue | dg.PathMetadataValue]:
    """A table per measure, what to mind, and where the report is."""
    tables = {name.replace(" ", "_"): table for name, table in report.tables().items()}
    return {
        "warnings": listed(report.warnings),
        "report": dg.MetadataValue.path(settings.reports / REPORT),
        **{name: dg.MetadataValue.md(table) for name, table in tables.items()},
    }


def own_family(warehouse: WarehouseResource) -> dg.MarkdownMetadataValue:
    """A sentence for each judge that grades models of its own vendor."""
    with warehouse.get_connection() as db:
        rows = Report.of(db, []).rows
    sentences = dict.fromkeys(row["warning"] or "" for row in rows if row["measure"] == OWN_FAMILY)
    return listed(list(sentences)[:MOST_WARNINGS])
