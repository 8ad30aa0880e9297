-- How many campaigns a piece of a fold has, and the first of them. The piece is the same range as in fold-campaigns.sql.
SELECT length(own) AS campaigns, own[1] AS first
FROM
(
    SELECT
        arraySort(groupArray(campaign_id)) AS ids,
        intDiv(length(ids) * {piece:UInt32}, {pieces:UInt32}) AS place,
        arraySlice(ids, place + 1, intDiv(length(ids) * ({piece:UInt32} + 1), {pieces:UInt32}) - place) AS own
    FROM (${touched})
)
