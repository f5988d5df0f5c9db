-- journal: items/<suite>/<suite_version>.jsonl -> items; the file's name is the suite's version
insert into items
select
    suite,
    regexp_extract(filename, '([0-9a-f]+)\.jsonl$', 1),
    id,
    question,
    image,
    answer,
    answer_type,
    category,
    rationale,
    raw_subject,
    coalesce(cluster, category),
    cluster is not null
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
        cluster: 'varchar'
    })
where id is not null
