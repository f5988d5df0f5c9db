-- journal: items/<suite>/<suite_version>.jsonl -> items; the file's name is the suite's version
insert into items
select
    suite,
    regexp_extract(filename, '([0-9a-f]+)\.jsonl$', 1),
    id,
    question,
    image,
    answer,
    coalesce(answer_type, 'files'),
    category,
    coalesce(rationale, ''),
    coalesce(raw_subject, ''),
    coalesce(cluster, category),
    cluster is not null,
    coalesce(kind, 'exam'),
    toolchain,
    grader_version,
    nullif(gaps, '')
from read_json($files, format = 'newline_delimited', ignore_errors = true, hive_partitioning = false, filename = true,
    maximum_object_size = $longest, columns = {
        suite: 'varchar',
        id: 'varchar',
        question: 'varchar',
        image: 'varchar',
        answer: 'varchar',
        answer_type: 'varchar',
        category: 'varchar',
        rationale: 'varchar',
        raw_subject: 'varchar',
        cluster: 'varchar',
        kind: 'varchar',
        toolchain: 'varchar',
        grader_version: 'varchar',
        gaps: 'varchar'
    })
where id is not null
