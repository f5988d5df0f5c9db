-- The current data set by suite and category.
select
    suite,
    category,
    count(*) as items,
    count(image) as with_image,
    count(*) filter (answer_type = 'multipleChoice') as multiple_choice
from dataset
group by suite, category
order by suite, category
