-- A cost that is not known is not taken for nothing; tokens of all attempts; how fast a reply came.
alter table predictions add column output_tokens_per_s double;
comment on column predictions.input_tokens is 'Tokens of the requests for this reply in this run, earlier attempts included, as far as servers told.';
comment on column predictions.output_tokens is 'Tokens of the replies, reasoning included: those of earlier attempts too, so not of the text in answer alone.';
comment on column predictions.reasoning_tokens is 'Tokens of reasoning within output_tokens, earlier attempts included.';
comment on column predictions.cached_tokens is 'Tokens within input_tokens that were read from the cache, earlier attempts included.';
comment on column predictions.cost_usd is 'Cost of the item in this run, earlier attempts included; NULL if for any attempt that used something neither the gateway nor its prices tell. What failed without a word about its use is taken to be free.';
comment on column predictions.cost_estimated is 'Whether any of the cost was computed from the catalog''s prices instead of being reported by the gateway.';
comment on column predictions.attempts is 'How many requests were made until this reply; those of earlier launches are not counted.';
comment on column predictions.output_tokens_per_s is 'Output tokens per second of this very reply, from the first text to the end; without reasoning that was not sent as text, for it came before. NULL if the reply was not streamed or its tokens are not known.';

drop view metrics_strict;
drop view metrics_moderate;
delete from metrics;
alter table metrics add column cost_known_usd double;
alter table metrics add column costs_unknown bigint;
alter table metrics alter column costs_unknown set not null;
comment on column metrics.input_tokens is 'Tokens of all requests, of every attempt at a reply.';
comment on column metrics.output_tokens is 'Tokens of all replies, reasoning included, of every attempt.';
comment on column metrics.cost_usd is 'Cost of all replies, every attempt included; NULL if it is not known of each of them (costs_unknown), for a part of the cost must not pass for the whole.';
comment on column metrics.cost_known_usd is 'Cost of those replies whose cost is known: the least that cost_usd can be. The same as cost_usd if costs_unknown is 0.';
comment on column metrics.costs_unknown is 'Replies that came, or used tokens, and whose cost is not known. Simulated and free models have a cost: 0.';
comment on column metrics.cost_estimated is 'Whether any of cost_known_usd was computed from the catalog''s prices.';
comment on column metrics.judge_cost_usd is 'Cost of judging, of those verdicts whose cost is known.';
comment on column metrics.output_tokens_per_s is 'Median output tokens per second of a reply between its first text and its end, without reasoning that was not sent as text.';
comment on column leaderboard_entries.cost_usd is 'Mean cost of a run''s replies, one to each item (with several samples, that of one of them), over those of the runs whose cost is known as a whole; NULL if there is none.';
create view metrics_strict as select * from metrics where complete;
comment on view metrics_strict is 'The numbers of complete runs only: every planned reply has a score.';
create view metrics_moderate as select * from metrics;
comment on view metrics_moderate is 'The numbers of every run over what was judged: read them with coverage, incomplete_because, and the bounds that what is missing allows (accuracy_if_missing_wrong, accuracy_if_missing_right).';

-- So far the tokens of a row were those of its reply alone. Reasoning that was not sent as text came before it.
update predictions
set output_tokens_per_s =
    nullif(greatest(output_tokens - if(coalesce(reasoning, '') = '', coalesce(reasoning_tokens, 0), 0), 0), 0)
        / (latency_s - first_token_s)
where latency_s > first_token_s;
