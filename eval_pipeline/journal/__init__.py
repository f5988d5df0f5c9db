"""The journal of finished work: the truth, from which the warehouse is built."""

from eval_pipeline.journal.files import BusyError as BusyError
from eval_pipeline.journal.files import FileCompactedError as FileCompactedError
from eval_pipeline.journal.files import JournalError as JournalError
from eval_pipeline.journal.files import ReadOnlyError as ReadOnlyError
from eval_pipeline.journal.files import translate_os_errors as translate_os_errors
from eval_pipeline.journal.journal import ATTEMPTS as ATTEMPTS
from eval_pipeline.journal.journal import DIAGNOSES as DIAGNOSES
from eval_pipeline.journal.journal import FORMAT as FORMAT
from eval_pipeline.journal.journal import ITEMS as ITEMS
from eval_pipeline.journal.journal import JUDGED as JUDGED
from eval_pipeline.journal.journal import LABELS as LABELS
from eval_pipeline.journal.journal import PREDICTIONS as PREDICTIONS
from eval_pipeline.journal.journal import RECLASSIFIED as RECLASSIFIED
from eval_pipeline.journal.journal import REJUDGED as REJUDGED
from eval_pipeline.journal.journal import RUNS as RUNS
from eval_pipeline.journal.journal import SIGHTINGS as SIGHTINGS
from eval_pipeline.journal.journal import STREAMS as STREAMS
from eval_pipeline.journal.journal import VERSIONS as VERSIONS
from eval_pipeline.journal.journal import Journal as Journal
from eval_pipeline.journal.journal import Stream as Stream
from eval_pipeline.journal.writer import JournalWriter as JournalWriter
