-- The categories of the current data set.
select distinct category from dataset order by category
