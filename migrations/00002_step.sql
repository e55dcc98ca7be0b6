-- quotad_step_v1: the arithmetic of limits, twin of internal/quota's Go (level.go).
-- Pure; the version is in the name so that nodes before and after an upgrade each call
-- their own. It never reads a table or a clock.
--
-- state:   for each limit its identity, its level and the level's scale (see below)
-- since:   the instant the state is of, µs; instant: of this charge, since ≤ instant
-- limits:  for each limit five integers: identity, algorithm, a, b, c
--          1 fixed_window  a = limit, b = start of the window that holds instant
--          2 token_bucket  a = capacity in parts, b = parts refilled each µs,
--                          c = scale, parts in a unit
-- sums:    the running sums of the costs, strictly ascending
-- returns: the length of the longest run of costs, from the first on, that fits every
--          limit, and behind it the state after charging that run.
-- level:   fixed_window: units used in the window; token_bucket: missing parts.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION quotad_step_v1(state bigint[], since bigint, instant bigint, limits bigint[], sums bigint[])
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    stepped bigint[] := '{0}';
    room    bigint := 9223372036854775807;
    fits    bigint;
    level   bigint;
    scale   bigint;
    refill  bigint;
    found   integer;
    at      integer := 2;
    l       integer := 1;
    run     integer;
BEGIN
    WHILE l < cardinality(limits) LOOP
        -- A limit keeps its place in the row unless the plan was edited.
        found := at - 1;
        IF state[found] IS DISTINCT FROM limits[l] THEN
            found := 1;
            WHILE state[found] <> limits[l] LOOP
                found := found + 3;
            END LOOP;
        END IF;
        level := coalesce(state[found + 1], 0);

        IF limits[l + 1] = 1 THEN
            IF since < limits[l + 3] THEN
                level := 0;
            END IF;
            scale := 1;
            fits := limits[l + 2] - level;
        ELSE
            refill := limits[l + 3];
            scale := limits[l + 4];
            IF level > 0 THEN
                IF state[found + 2] <> scale THEN
                    -- div and not /, whose digits end somewhere.
                    level := least(div(level::numeric * scale + state[found + 2] - 1, state[found + 2]), 9223372036854775807);
                END IF;
                IF refill > 0 AND instant - since > level / refill THEN
                    level := 0;
                ELSE
                    level := level - (instant - since) * refill;
                END IF;
            END IF;
            fits := (limits[l + 2] - level) / scale;
        END IF;

        IF fits < room THEN
            room := fits;
        END IF;
        stepped[at] := limits[l];
        stepped[at + 1] := level;
        stepped[at + 2] := scale;
        at := at + 3;
        l := l + 5;
    END LOOP;

    run := width_bucket(room, sums);
    IF run > 0 THEN
        stepped[1] := run;
        room := sums[run];
        l := 3;
        WHILE l < at LOOP
            stepped[l] := stepped[l] + room * stepped[l + 1];
            l := l + 3;
        END LOOP;
    END IF;
    RETURN stepped;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION quotad_step_v1;
