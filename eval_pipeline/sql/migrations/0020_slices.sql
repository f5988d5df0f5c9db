-- The leaderboard by suite and category, and in one place how many scores an interval is for.
create macro effective_scores(items, scores, accuracy, standard_error) as
    case
        when accuracy in (0, 1) or standard_error is null then items
        when standard_error = 0 then scores
        else greatest(items, least(scores, accuracy * (1 - accuracy) / standard_error ** 2))
    end;

create table leaderboard_slices (
    model varchar not null,
    experiment varchar not null,
    scope varchar not null,
    judge varchar not null,
    judge_version varchar not null,
    is_official boolean not null,
    suite varchar not null,
    category varchar,
    judged bigint not null,
    accuracy double not null,
    accuracy_low double not null,
    accuracy_high double not null
);
comment on table leaderboard_slices is 'What the leaderboard is over one suite, or over one category of it: the mean of the same runs. Ranks are for the whole leaderboard only.';
comment on column leaderboard_slices.model is 'The model.';
comment on column leaderboard_slices.experiment is 'The experiment.';
comment on column leaderboard_slices.scope is 'full, or text for models that see no images (or were asked text only).';
comment on column leaderboard_slices.judge is 'Who judged.';
comment on column leaderboard_slices.judge_version is 'The version of that judge.';
comment on column leaderboard_slices.is_official is 'Whether this is the official version of its judge, as in leaderboard.';
comment on column leaderboard_slices.suite is 'The suite.';
comment on column leaderboard_slices.category is 'The category; NULL for the whole suite.';
comment on column leaderboard_slices.judged is 'Number of items.';
comment on column leaderboard_slices.accuracy is 'Mean score: over the replies to each item first, then over the items.';
comment on column leaderboard_slices.accuracy_low is 'Lower end of the 95 % interval (Wilson) for the choice of items.';
comment on column leaderboard_slices.accuracy_high is 'Upper end of that interval.';
