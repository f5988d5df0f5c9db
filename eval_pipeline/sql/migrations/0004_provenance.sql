-- Where an answer came from and how long it took, and how models are written to.
alter table predictions add column generation_s double;
alter table predictions add column system_fingerprint varchar;
alter table judged add column carried_from varchar;
alter table model_catalog add column dialect varchar;
alter table model_catalog add column reasoning_price double;
comment on column predictions.generation_s is 'Seconds from the first token to the last; NULL if the reply was not streamed.';
comment on column predictions.system_fingerprint is 'The backend''s configuration, as the server names it.';
comment on column judged.carried_from is 'The run of an older benchmark version that this verdict was taken over from; NULL if it was asked for here.';
comment on column model_catalog.dialect is 'How requests are written: chat_completions, responses or messages.';
comment on column model_catalog.reasoning_price is 'US dollars per reasoning token, where they have a price of their own.';
comment on column predictions.outcome is 'ok; refused, truncated or content_filter (the model''s own failing); or what went wrong on the way: empty, rate_limited, timeout, server_error, connection_error, cut_stream, invalid_reply, bad_request, context_too_long, auth, forbidden, no_credit, unknown_model.';

update model_catalog set dialect = 'chat_completions';
