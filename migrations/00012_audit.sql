-- Who changed what.

-- +goose Up

-- One row for each change that somebody made by the API, a page or a command.
-- actor:    the id of an API key, command-line, or start
-- request:  the id of the request, empty outside of HTTP
-- target:   its path under /v1/; subject: the first two parts of it
-- customer: of whom before and after may tell something
-- scrubbed: that customer was erased, and the row tells nothing of it any more
-- before, after: as JSON; null: there was nothing, or it is scrubbed
--
-- A partition for each UTC month of its time. A month that is older than audit-retention is dropped as a
-- table. Nodes make the months to come (upkeep.Partitioner). Entries of months that are not made lie in
-- audit_default. There is no primary key, since that would need at: entries are found by at and id.
CREATE TABLE audit (
    id       bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor    text        NOT NULL,
    request  text        NOT NULL,
    action   text        NOT NULL,
    subject  text        NOT NULL,
    target   text        NOT NULL,
    customer bigint,
    scrubbed boolean     NOT NULL DEFAULT false,
    before   jsonb,
    after    jsonb
) PARTITION BY RANGE (at);
CREATE INDEX audit_at ON audit (at, id);
CREATE INDEX audit_actor ON audit (actor, at, id);
CREATE INDEX audit_subject ON audit (subject, at, id);
CREATE INDEX audit_customer ON audit (customer, id) WHERE customer IS NOT NULL AND NOT scrubbed;

-- The first partition ends with a month, at least two days from now.
CREATE TABLE audit_default PARTITION OF audit DEFAULT;
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('CREATE TABLE audit_first PARTITION OF audit FOR VALUES FROM (MINVALUE) TO (%L)',
        (date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC' + interval '2 days') + interval '1 month') AT TIME ZONE 'UTC');
END $$;
-- +goose StatementEnd

-- Rows stay as they are. Two things are let by: to take out what is said of an erased customer,
-- and to delete what is older than the setting audit-retention.
-- +goose StatementBegin
CREATE FUNCTION audit_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.at < clock_timestamp() - (SELECT value::interval FROM settings WHERE name = 'audit-retention') THEN
            RETURN OLD;
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.scrubbed AND NEW.before IS NULL AND NEW.after IS NULL
           AND (to_jsonb(OLD) - '{scrubbed,before,after,subject,target}'::text[]) = (to_jsonb(NEW) - '{scrubbed,before,after,subject,target}'::text[])
           AND EXISTS (SELECT FROM customers WHERE id = OLD.customer AND erased_at IS NOT NULL) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_stands BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_stands();
CREATE TRIGGER audit_stays BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_stands();
CREATE TRIGGER audit_stays BEFORE TRUNCATE ON audit_default FOR EACH STATEMENT EXECUTE FUNCTION audit_stands();
CREATE TRIGGER audit_stays BEFORE TRUNCATE ON audit_first FOR EACH STATEMENT EXECUTE FUNCTION audit_stands();

-- +goose Down
DROP TABLE audit;
DROP FUNCTION audit_stands;
