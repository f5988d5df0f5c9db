-- Every item that was ever loaded, and in which form its image is, if browsers can be trusted with it.
select
    suite,
    item_id,
    arg_max(nullif(regexp_extract(image, '^data:image/(png|jpeg|gif|webp);base64,', 1), ''), loaded_at) as form
from items
left join (
    select suite, suite_version, max(last_loaded_at) as loaded_at from benchmark_versions group by all
) as loaded using (suite, suite_version)
group by suite, item_id
order by suite, item_id
