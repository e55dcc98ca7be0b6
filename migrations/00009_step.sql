-- quotad_step_v2: the arithmetic of limits, twin of the rules in internal/quota.
-- Pure; the version is in the name so that nodes before and after an upgrade each call
-- their own. It never reads a table or a clock.
--
-- state:   for each limit a bucket: its identity, its level and its aux (see below).
--          Behind a bucket whose identity is below 0, a log's, come aux more integers.
-- since:   the instant the state is of, µs; instant: of this charge, since ≤ instant
-- edited:  the instant at which the limits came into force, µs
-- limits:  for each limit six integers: identity, branch, a, b, c, d. The branch's last
--          digit is the algorithm, its tens are the mode: 0 hard, 1 soft, 2 shadow.
--          1 fixed_window    level = used                 a = limit, b = window's start
--          2 token_bucket    level = missing parts,       a = capacity in parts,
--                            aux = -1 - the limit they    b = parts refilled each µs,
--                            are of                       c = parts in a unit,
--                                                         d = limit
--          3 sliding_window  level = used in the window,  a = limit, b = window's start,
--                            aux = in the one before      c = window's length
--          4 first_hit       level = used,                a = limit, b = window's length
--                            aux = window's start
--          5 allocation      level = used                 a = limit
--          6 sliding_log     level = units in the log,    a = limit, b = window's length,
--                            aux = integers of the log    c = precision
-- sums:    the running sums of the costs, strictly ascending
-- returns: the length of the longest run of costs, from the first on, that fits every
--          hard limit and for all of which each shadow has one verdict; the bits (from the
--          first limit on) of the shadows that would refuse it and so are not charged; and
--          behind them the state after charging that run.

-- +goose Up

-- A log's integers: the number of its newest block (blocks are a precision long and
-- counted from the epoch), and for each block with units, from the oldest on, one integer
-- n·r + units, where n is the block's number modulo m. m is more than the blocks that can
-- count at once, so n and the newest block say which one it is; r is all that 64 bits
-- leave for units.

-- quotad_log_span_v1 is m, and quotad_log_units_v1 is r.
CREATE FUNCTION quotad_log_span_v1(win bigint, prec bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT (win + prec - 1) / prec + 2';
CREATE FUNCTION quotad_log_units_v1(win bigint, prec bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT 9223372036854775807 / ((win + prec - 1) / prec + 2)';

-- quotad_log_stand_v1 takes the blocks out whose last instant is a window old, and
-- returns the units left, the number of integers and the integers.
-- +goose StatementBegin
CREATE FUNCTION quotad_log_stand_v1(units bigint, log bigint[], instant bigint, win bigint, prec bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    m      bigint := quotad_log_span_v1(win, prec);
    r      bigint := quotad_log_units_v1(win, prec);
    newest bigint := log[1];
    -- The first block that counts; nothing is older than the epoch.
    oldest bigint := CASE WHEN instant < win + prec - 1 THEN 0 ELSE (instant - win - prec + 1) / prec + 1 END;
    age    bigint;
    n      integer := 2;
BEGIN
    IF newest IS NULL OR newest < oldest THEN
        RETURN '{0,0}';
    END IF;
    LOOP
        age := newest % m - log[n] / r;
        EXIT WHEN newest - age - CASE WHEN age < 0 THEN m ELSE 0 END >= oldest;
        units := units - log[n] % r;
        n := n + 1;
    END LOOP;
    IF n > 2 THEN
        log := newest || log[n:];
    END IF;
    RETURN units || (cardinality(log) || log);
END $$;
-- +goose StatementEnd

-- quotad_log_charge_v1 adds units to a log that stands at the instant (what
-- quotad_log_stand_v1 returned, as it returns it). Only a soft limit's log can have more
-- than 1001 blocks: then the two oldest become one.
-- +goose StatementBegin
CREATE FUNCTION quotad_log_charge_v1(stood bigint[], added bigint, instant bigint, win bigint, prec bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    m     bigint := quotad_log_span_v1(win, prec);
    r     bigint := quotad_log_units_v1(win, prec);
    block bigint := instant / prec;
    last  integer := cardinality(stood);
    units bigint;
BEGIN
    IF stood[3] = block THEN
        units := least(stood[last] % r + added::numeric, r - 1);
        stood[1] := stood[1] + units - stood[last] % r;
        stood[last] := (block % m) * r + units;
        RETURN stood;
    END IF;
    units := least(added, r - 1);
    stood[1] := stood[1] + units;
    stood[3] := block;
    stood[greatest(last, 3) + 1] := (block % m) * r + units;
    IF last = 1004 THEN
        units := least(stood[4] % r + stood[5] % r, r - 1);
        stood[1] := stood[1] + units - stood[4] % r - stood[5] % r;
        stood[5] := stood[5] - stood[5] % r + units;
        stood := stood[:3] || stood[5:];
    END IF;
    stood[2] := cardinality(stood) - 2;
    RETURN stood;
END $$;
-- +goose StatementEnd

-- quotad_edited_v1 is what was missing of a token bucket when its limit was edited, in the
-- present parts, and when that was. was is the bucket's aux, scale the present parts in a
-- unit.
-- +goose StatementBegin
CREATE FUNCTION quotad_edited_v1(missing bigint, since bigint, instant bigint, edited bigint, was bigint, win bigint, scale bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    parts  bigint := was;
    refill bigint;
    common bigint;
BEGIN
    IF was < 0 THEN
        common := gcd(greatest(-1 - was, 1), win); -- a closed one's scale is its window
        parts := win / common;
        refill := (-1 - was) / common;
        edited := least(greatest(since, edited), instant);
        IF refill > 0 AND edited - since > missing / refill THEN
            missing := 0;
        ELSE
            missing := missing - (edited - since) * refill;
        END IF;
        since := edited;
    END IF;
    -- div and not /, whose digits end somewhere.
    RETURN ARRAY[least(div(missing::numeric * scale + parts - 1, parts), 9223372036854775807)::bigint, since];
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION quotad_step_v2(state bigint[], since bigint, instant bigint, edited bigint, limits bigint[], sums bigint[])
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    stepped bigint[] := '{0,0}';
    room    bigint := 9223372036854775807;
    fits    bigint;
    level   bigint;
    aux     bigint;
    refill  bigint;
    branch  bigint;
    found   integer := 1;
    at      integer := 3;
    l       integer := 1;
    run     integer;
    log     bigint[];
    r       bigint;
    spared  boolean;
    shadows bigint[]; -- of each its bit and its room
    most    bigint; -- what soft limits can count
BEGIN
    WHILE l < cardinality(limits) LOOP
        -- A limit keeps its place in the row unless the plan was edited.
        IF state[found] IS DISTINCT FROM limits[l] THEN
            found := 1;
            WHILE state[found] <> limits[l] LOOP
                found := found + 3 + CASE WHEN state[found] < 0 THEN state[found + 2] ELSE 0 END;
            END LOOP;
        END IF;
        level := coalesce(state[found + 1], 0);
        branch := limits[l + 1] % 10;

        IF branch = 1 THEN
            aux := 1;
            IF since < limits[l + 3] THEN
                level := 0;
            END IF;
            fits := limits[l + 2] - level;
        ELSIF branch = 2 THEN
            refill := limits[l + 3];
            aux := -1 - limits[l + 5];
            IF level > 0 THEN
                r := since;
                IF state[found + 2] <> aux THEN
                    log := quotad_edited_v1(level, since, instant, edited, state[found + 2],
                        limits[l + 4] * CASE WHEN refill = 0 THEN 1 ELSE limits[l + 5] / refill END, limits[l + 4]);
                    level := log[1];
                    r := log[2];
                END IF;
                IF refill > 0 AND instant - r > level / refill THEN
                    level := 0;
                ELSE
                    level := level - (instant - r) * refill;
                END IF;
            END IF;
            fits := (limits[l + 2] - level) / limits[l + 4];
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
        ELSIF branch = 5 THEN
            aux := 1;
            fits := limits[l + 2] - level;
        ELSE
            aux := coalesce(state[found + 2], 0);
            log := quotad_log_stand_v1(level, state[found + 3:found + 2 + aux], instant, limits[l + 3], limits[l + 4]);
            found := found + aux;
            level := log[1];
            aux := log[2];
            fits := limits[l + 2] - level;
        END IF;

        IF limits[l + 1] < 10 THEN
            IF fits < room THEN
                room := fits;
            END IF;
        ELSIF limits[l + 1] > 20 THEN
            shadows := shadows || ARRAY[1::bigint << ((l - 1) / 6), fits];
        ELSIF branch = 2 THEN
            most := least(most, (9223372036854775807 - level) / limits[l + 4]);
        ELSIF branch = 6 THEN
            r := quotad_log_units_v1(limits[l + 3], limits[l + 4]);
            most := least(most, r - 1 - CASE WHEN log[3] = instant / limits[l + 4] THEN log[cardinality(log)] % r ELSE 0 END);
        ELSE
            most := least(most, 4611686018427387903 - level);
        END IF;
        stepped[at] := limits[l];
        stepped[at + 1] := level;
        stepped[at + 2] := aux;
        IF branch = 6 AND aux > 0 THEN
            stepped := stepped || log[3:];
            at := at + aux;
        END IF;
        found := found + 3;
        at := at + 3;
        l := l + 6;
    END LOOP;

    run := width_bucket(room, sums);
    IF run = 0 THEN
        RETURN stepped;
    END IF;
    -- What a soft limit cannot count any more it counts as the most it can, in a run of
    -- one: so the state in front of each hit of a longer run is known from the one behind.
    IF most < sums[run] THEN
        run := least(run, greatest(1, width_bucket(most, sums)));
    END IF;
    IF shadows IS NOT NULL THEN
        FOR i IN 1 .. cardinality(shadows) BY 2 LOOP
            IF sums[1] <= shadows[i + 1] THEN
                run := least(run, width_bucket(shadows[i + 1], sums));
            ELSE
                stepped[2] := stepped[2] | shadows[i];
                l := 1;
                WHILE l < run AND sums[l + 1] - sums[l] > shadows[i + 1] LOOP
                    l := l + 1;
                END LOOP;
                run := l;
            END IF;
        END LOOP;
    END IF;

    stepped[1] := run;
    room := sums[run];
    l := 1;
    at := 3;
    WHILE l < cardinality(limits) LOOP
        branch := limits[l + 1];
        IF branch = 2 THEN
            stepped[at + 1] := stepped[at + 1] + room * limits[l + 4];
        ELSIF branch < 6 THEN
            stepped[at + 1] := stepped[at + 1] + room;
        ELSE
            spared := stepped[2] & (1::bigint << ((l - 1) / 6)) <> 0;
            IF branch % 10 = 6 THEN
                found := at + 2 + stepped[at + 2];
                IF NOT spared THEN
                    log := quotad_log_charge_v1(stepped[at + 1:found], room, instant, limits[l + 3], limits[l + 4]);
                    stepped := stepped[:at] || log || stepped[found + 1:];
                END IF;
                at := at + stepped[at + 2];
            ELSIF spared THEN
                NULL; -- a shadow that would refuse
            ELSIF branch % 10 = 2 THEN
                stepped[at + 1] := least(stepped[at + 1] + room::numeric * limits[l + 4], 9223372036854775807);
            ELSE
                stepped[at + 1] := least(stepped[at + 1] + room, 4611686018427387903);
            END IF;
        END IF;
        at := at + 3;
        l := l + 6;
    END LOOP;
    RETURN stepped;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION quotad_step_v2;
DROP FUNCTION quotad_edited_v1;
DROP FUNCTION quotad_log_charge_v1;
DROP FUNCTION quotad_log_stand_v1;
DROP FUNCTION quotad_log_units_v1;
DROP FUNCTION quotad_log_span_v1;
