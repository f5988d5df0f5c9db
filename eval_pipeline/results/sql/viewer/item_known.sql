-- An item as it was loaded last: by its name, or by the hash that stands for a long one.
select suite, item_id, category, kind, question, answer, image
from items
left join (
    select suite, suite_version, max(last_loaded_at) as loaded_at from benchmark_versions group by all
) as loaded using (suite, suite_version)
where (suite = $suite or md5(suite) = $suite_hash) and (item_id = $item_id or md5(item_id) = $item_hash)
qualify row_number() over (partition by suite, item_id order by loaded_at desc nulls last) = 1
limit 1
