-- Each part of the journal is shown on its own, so that what did not change need not be read again.
drop table published;
create table published (
    part         varchar primary key,
    snapshot     varchar not null,
    published_at timestamp not null
);
comment on table published is 'Which state of the journal this file shows, part by part.';
comment on column published.part is 'A stream of the journal, or sql for the queries that made the tables.';
comment on column published.snapshot is 'Hash of the part''s files.';
comment on column published.published_at is 'When the part was read.';
