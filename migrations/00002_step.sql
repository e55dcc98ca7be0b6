-- quotad_step_v1: the arithmetic of limits, twin of the rules in internal/quota.
-- Pure; the version is in the name so that nodes before and after an upgrade each call
-- their own. It never reads a table or a clock.
--
-- state:   for each limit its identity, its level and its aux (see below)
-- since:   the instant the state is of, µs; instant: of this charge, since ≤ instant
-- limits:  for each limit five integers: identity, branch, a, b, c
--          1 fixed_window    level = used                 a = limit, b = window's start
--          2 token_bucket    level = missing parts,       a = capacity in parts,
--                            aux = parts in a unit        b = parts refilled each µs,
--                                                         c = parts in a unit
--          3 sliding_window  level = used in the window,  a = limit, b = window's start,
--                            aux = in the one before      c = window's length
--          4 first_hit       level = used,                a = limit, b = window's length
--                            aux = window's start
--          5 allocation      level = used                 a = limit
-- sums:    the running sums of the costs, strictly ascending
-- returns: the length of the longest run of costs, from the first on, that fits every
--          limit, and behind it the state after charging that run.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION quotad_step_v1(state bigint[], since bigint, instant bigint, limits bigint[], sums bigint[])
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    stepped bigint[] := '{0}';
    room    bigint := 9223372036854775807;
    fits    bigint;
    level   bigint;
    aux     bigint;
    refill  bigint;
    branch  bigint;
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
        branch := limits[l + 1];

        IF branch = 1 THEN
            aux := 1;
            IF since < limits[l + 3] THEN
                level := 0;
            END IF;
            fits := limits[l + 2] - level;
        ELSIF branch = 2 THEN
            refill := limits[l + 3];
            aux := limits[l + 4];
            IF level > 0 THEN
                IF state[found + 2] <> aux THEN
                    -- div and not /, whose digits end somewhere.
                    level := least(div(level::numeric * aux + state[found + 2] - 1, state[found + 2]), 9223372036854775807);
                END IF;
                IF refill > 0 AND instant - since > level / refill THEN
                    level := 0;
                ELSE
                    level := level - (instant - since) * refill;
                END IF;
            END IF;
            fits := (limits[l + 2] - level) / aux;
        ELSIF branch = 3 THEN
            aux := coalesce(state[found + 2], 0);
            IF since < limits[l + 3] THEN
                aux := CASE WHEN since >= limits[l + 3] - limits[l + 4] THEN level ELSE 0 END;
                level := 0;
            END IF;
            fits := limits[l + 2] - level
                    - div(aux::numeric * (limits[l + 4] - (instant - limits[l + 3])), limits[l + 4])::bigint;
        ELSIF branch = 4 THEN
            aux := state[found + 2];
            IF level = 0 OR instant >= aux + limits[l + 3] THEN
                level := 0;
                aux := instant;
            END IF;
            fits := limits[l + 2] - level;
        ELSE
            aux := 1;
            fits := limits[l + 2] - level;
        END IF;

        IF fits < room THEN
            room := fits;
        END IF;
        stepped[at] := limits[l];
        stepped[at + 1] := level;
        stepped[at + 2] := aux;
        at := at + 3;
        l := l + 5;
    END LOOP;

    run := width_bucket(room, sums);
    IF run > 0 THEN
        stepped[1] := run;
        room := sums[run];
        l := 2;
        at := 3;
        WHILE l < cardinality(limits) LOOP
            stepped[at] := stepped[at] + room * CASE WHEN limits[l] = 2 THEN limits[l + 3] ELSE 1 END;
            at := at + 3;
            l := l + 5;
        END LOOP;
    END IF;
    RETURN stepped;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION quotad_step_v1;
