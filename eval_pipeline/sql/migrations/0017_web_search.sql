-- Which models search the web.
alter table model_catalog add column web_search boolean;
alter table model_catalog alter column web_search type boolean using false;
alter table model_catalog alter column web_search set not null;
alter table model_catalog alter column web_search set default false;
comment on column model_catalog.web_search is 'Whether its gateway lists web search for it, or the settings say that it has it.';
