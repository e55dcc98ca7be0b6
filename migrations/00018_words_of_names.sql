-- Customers are found by the words of their names.

-- +goose NO TRANSACTION
-- +goose Up

-- name_words are the words of a name: in small letters, without accents. A database whose locale is
-- C knows the letters of ASCII only, so those of other alphabets that have two cases are named
-- here. The first 500 characters count: a tsvector holds no word of more than 2,046 bytes.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION name_words(name text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    array_remove(regexp_split_to_array(translate(lower(regexp_replace(left(normalize(name, NFD), 500), '[\u0300-\u036f]+', '', 'g')),
        'ÆØÞÐŁĐŒĦŊẞıΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩςАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯІЄҐЂЈЉЊЋЏЅӘҒҚҢӨҰҮҺԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔՕՖ',
        'æøþðłđœħŋßiαβγδεζηθικλμνξοπρστυφχψωσабвгдежзиклмнопрстуфхцчшщъыьэюяієґђјљњћџѕәғқңөұүһաբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ'),
        '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u3003]+'), '');
-- +goose StatementEnd

-- Customers that hits made have no name, so that an index is no work for hits. fastupdate would keep
-- new names in a list that each search reads whole. A build that was cut off leaves an index that is
-- of no use.
DROP INDEX CONCURRENTLY IF EXISTS customers_words;
CREATE INDEX CONCURRENTLY customers_words ON customers USING gin (array_to_tsvector(name_words(name))) WITH (fastupdate = off) WHERE name <> '';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS customers_words;
DROP FUNCTION IF EXISTS name_words(text);
