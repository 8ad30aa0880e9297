-- How many people there are on the whole cluster. Only the numbers leave these views.
--
-- They read as the definer, on the server that was asked. The states of the other shards come over the cluster of
-- remote_servers that is called as this one, with `_counts`. It has no secret but a user, so the shards check that user's
-- rights, and not those of the person who asks.

CREATE OR REPLACE VIEW ${views}_parts.backers
SQL SECURITY DEFINER
AS SELECT uniqExactMerge(people.backers) AS total_backers, arraySort(groupUniqArray(people.shard)) AS shards
FROM ${base}_all.shard_backers AS people;

CREATE OR REPLACE VIEW ${views}_parts.creators
SQL SECURITY DEFINER
AS SELECT uniqExactMerge(people.creators) AS total_creators
FROM ${base}_all.shard_creators AS people;
