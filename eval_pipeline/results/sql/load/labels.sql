-- journal: labels/<when>-<hash>.jsonl -> human_labels: of the files, the one that was loaded last.
-- A label says which reply it means as exactly as its file does. Where that fits replies that are not the same
-- text, it is about none of them: which one the person had read is anybody's guess.
create temp table labels as
select * exclude (filename)
from read_json($files, format = 'newline_delimited', ignore_errors = true, hive_partitioning = false, filename = true,
    maximum_object_size = $longest, columns = {
        line: 'bigint',
        suite: 'varchar',
        item_id: 'varchar',
        model: 'varchar',
        run_id: 'varchar',
        sample: 'bigint',
        labeller: 'varchar',
        correct: 'boolean'
    })
where item_id is not null and filename = list_max($files);

insert into human_labels
with fitting as (
    select
        labels.line,
        count(*) as replies,
        count(distinct coalesce(answer, '')) as answers,
        list(prediction_id order by prediction_id) as prediction_ids
    from labels
    join predictions on predictions.item_id = labels.item_id
        and is_result
        and (labels.suite is null or predictions.suite = labels.suite)
        and (labels.model is null or predictions.model = labels.model)
        and (labels.run_id is null or starts_with(predictions.run_id, labels.run_id))
        and (labels.sample is null or predictions.sample = labels.sample)
    group by labels.line
)
select
    line,
    suite,
    item_id,
    model,
    run_id,
    sample,
    labeller,
    correct,
    coalesce(replies, 0),
    coalesce(answers, 0),
    if(answers = 1, prediction_ids, [])
from labels
left join fitting using (line)
order by line;

drop table labels
