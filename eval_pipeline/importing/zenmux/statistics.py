"""The statistics that zenmux-benchmark keeps beside its results: who was complete, and who not."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline.importing.zenmux.files import Entry
from eval_pipeline.importing.zenmux.shapes import stamp
from eval_pipeline.records import now

NOT_ANSWERED, NOT_JUDGED = "not answered", "not judged"
_LACKING = {
    "evaluation": ("responses", (NOT_ANSWERED,)),
    "judge": ("judgments", (NOT_ANSWERED, NOT_JUDGED)),
}


def statistics_files(
    counts: Mapping[str, Counter[str]], results: Sequence[Entry], name: str
) -> Iterator[tuple[str, Entry]]:
    """Each file's name and content, by how the questions of each model ended."""
    about = {"timestamp": stamp(now()), "results_directory": name}
    for part, (noun, lacking) in _LACKING.items():
        models = {model: _model(one, noun, lacking) for model, one in counts.items()}
        incomplete = [model for model, one in models.items() if not one["is_complete"]]
        yield (
            f"{part}_statistics_{name}.json",
            {
                "generation_metadata": {**about, "total_files_processed": len(models)},
                "model_statistics": models,
                "failure_lists": {f"incomplete_{part}_models": incomplete},
            },
        )
    excluded = [one["model_identifier"] for one in results if one["excluded_from_metrics"]]
    yield (
        f"metrics_statistics_{name}.json",
        {
            "generation_metadata": about,
            "metrics_summary_statistics": {
                "total_models": len(results),
                "models_with_valid_metrics": len(results) - len(excluded),
                "models_excluded_from_metrics": len(excluded),
            },
            "failure_lists": {"excluded_models": excluded},
        },
    )


def _model(counts: Counter[str], noun: str, lacking: Sequence[str]) -> Entry:
    total, without = counts.total(), sum(counts[one] for one in lacking)
    return {
        "total_questions": total,
        f"{noun}_with_content": total - without,
        f"{noun}_without_content": without,
        "completion_rate": round(100 * (total - without) / total, 2),
        "is_complete": without == 0,
    }
