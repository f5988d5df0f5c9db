-- A model for which nobody answers is kept out of the selected ones, with the reason.
alter table model_catalog add column kept_out_because varchar;
comment on column model_catalog.selected is 'Whether the settings selected it when it was seen last, and it was not kept out (kept_out_because): if so it is a partition.';
comment on column model_catalog.kept_out_because is 'Why a model that the settings selected was not taken when it was seen last: how a tiny question to it ended, and what the server said. NULL if it was not kept out.';
